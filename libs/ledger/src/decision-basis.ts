import { Database } from '#database';
import { Problem } from '#problem';

/** What a report on a decision needs to know of it. Nothing of this changes once the decision is recorded. */
export interface DecisionBasis {
  readonly key: string;
  readonly keySource: string;
  readonly contentKey: string;
  readonly action: string;
  /** The decision's members of the composite type `decision_row`. */
  readonly row: Record<string, unknown> & { decision_id: string };
}

interface BasisRow {
  content_key: string;
  row: Record<string, unknown> & { decision_id: string; idem_key: string; key_source: string; action: string };
}

/** @throws Problem `not-found` */
export async function readDecisionBasis(
  database: Database,
  tenant: string,
  decisionId: string,
): Promise<DecisionBasis> {
  const [found] = await database.transaction(tenant, (tx) =>
    tx.query<BasisRow[]>(
      `SELECT content_key(d.tenant_id, d.content_hash) AS content_key,
              json_build_object(
                'idem_key', d.idem_key, 'key_source', d.key_source, 'content_hash', d.content_hash, 'fingerprint', d.fingerprint,
                'decision_id', d.decision_id, 'action', d.action, 'action_version', d.action_version,
                'place', CASE v.rules::json->>'uniqueness' WHEN 'subject' THEN '' WHEN 'subject-and-period' THEN d.reporting_period END,
                'same_content', v.rules::json->>'sameContent',
                'subject_type', d.subject_type, 'subject_id', d.subject_id, 'reporting_period', d.reporting_period,
                'retention_seconds', (v.rules::json->>'responseRetentionDays')::integer * 86400) AS row
         FROM decision_record d
         JOIN action_version v ON v.tenant_id = d.tenant_id AND v.action = d.action AND v.version = d.action_version
        WHERE d.tenant_id = $1 AND d.decision_id = $2`,
      [tenant, decisionId],
    ),
  );
  if (found === undefined) throw new Problem('not-found', 'There is no such decision.');
  const { row, content_key: contentKey } = found;
  return { key: row.idem_key, keySource: row.key_source, contentKey, action: row.action, row };
}
