import { Database } from '#database';
import { appliedBody } from './response.js';

interface EntryRow {
  decision_id: string;
  key: string;
  key_source: string;
  content_key: string;
  result: string;
  effect_id: string;
  action: string;
  ledger_entry_id: string;
  external_ref: string | null;
  recorded_at: string;
}

/**
 * The answer of an applied decision whose stored response was pruned, written out again from the ledger, byte for byte.
 * A refusal's bytes are kept in its entry and never come here.
 */
export async function appliedBodyFromEntry(database: Database, tenant: string, decisionId: string): Promise<string> {
  const [entry] = await database.transaction(tenant, (tx) =>
    tx.query<EntryRow[]>(
      `SELECT d.decision_id, d.idem_key AS key, d.key_source, content_key(d.tenant_id, d.content_hash) AS content_key,
              l.result, l.effect_id, l.external_ref, d.action, l.ledger_entry_id, rfc3339(l.recorded_at) AS recorded_at
         FROM decision_record d
         JOIN ledger_entry l ON l.tenant_id = d.tenant_id AND l.idem_key = d.idem_key
        WHERE d.tenant_id = $1 AND d.decision_id = $2 AND l.outcome = 'applied'`,
      [tenant, decisionId],
    ),
  );
  if (entry === undefined) throw new Error(`Decision ${decisionId} has no applied entry`);
  const parts = {
    decisionId: entry.decision_id,
    key: entry.key,
    keySource: entry.key_source,
    contentKey: entry.content_key,
    result: entry.result,
    effectId: entry.effect_id,
    action: entry.action,
    ledgerEntryId: entry.ledger_entry_id,
    externalRef: entry.external_ref,
  };
  return appliedBody(parts, entry.recorded_at);
}
