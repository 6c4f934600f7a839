import type { Transaction } from '#database';
import type { JsonObject } from '#key';

const base64url = (bytes: string): string => `translate(encode(${bytes}, 'base64'), '+/=', '-_')`;

/** SHA-256 over the salt and the RFC 8785 bytes of a value; NULL where there is none. */
const digest = (salt: string, text: string): string => `encode(sha256(${salt} || convert_to(${text}, 'UTF8')), 'hex')`;

/** The params as they stand in the canonical inputs: `json` keeps the text of a member as it is. */
const PARAMS = `(d.inputs::json->'params')::text`;

/** Text as RFC 8785 writes it is text as PostgreSQL writes it in JSON. */
const NOTE = 'to_json(d.note)::text';

/** Base64url, without a salt for what is not there. */
export const SALTS = `json_build_object('params', ${base64url('l.params_salt')},
  'note', CASE WHEN d.note IS NOT NULL THEN ${base64url('l.note_salt')} END,
  'result', CASE WHEN l.result IS NOT NULL THEN ${base64url('l.result_salt')} END)`;

/**
 * What the log covers of an entry, from `ledger_entry l` and its `decision_record d`. An entry is shown by it too, so that
 * what is shown and what was sealed cannot differ.
 */
export const LEAF_MEMBERS = `'tenant', l.tenant_id, 'ledgerEntryId', l.ledger_entry_id, 'decisionId', l.decision_id,
  'key', l.idem_key, 'keySource', d.key_source, 'contentKey', content_key(d.tenant_id, d.content_hash), 'fingerprint', encode(d.fingerprint, 'hex'),
  'action', d.action, 'actionVersion', d.action_version, 'subject', json_build_object('type', d.subject_type, 'id', d.subject_id),
  'reportingPeriod', d.reporting_period, 'outcome', l.outcome, 'reason', l.reason,
  'model', json_build_object('id', d.model_id, 'version', d.model_version), 'promptTemplateSha256', encode(d.prompt_template_sha256, 'hex'),
  'retrievalSnapshotId', d.retrieval_snapshot_id, 'policyVersion', d.policy_version, 'effectId', l.effect_id, 'externalRef', l.external_ref,
  'recordedBy', l.credential_id, 'recordedAt', rfc3339(l.recorded_at), 'paramsDigest', ${digest('l.params_salt', PARAMS)},
  'noteDigest', ${digest('l.note_salt', NOTE)}, 'resultDigest', ${digest('l.result_salt', 'l.result')}`;

export const DECISION_OF_ENTRY =
  'JOIN decision_record d ON d.decision_id = l.decision_id AND d.tenant_id = l.tenant_id';

/** The leaf of an entry `l` of the tenant `$1`, as soon as a checkpoint covers it. */
export const LEAF_OF_ENTRY = `LEFT JOIN log_leaf g ON g.ledger_entry_id = l.ledger_entry_id AND g.tenant_id = l.tenant_id
     AND g.leaf_index < (SELECT t.signed_size FROM log_tree t WHERE t.tenant_id = $1)`;

/**
 * The members of the entries' leaves, in the order of the ids; one that is not there is left out. Each entry is looked up by
 * its index (OFFSET 0 keeps it so), however many there are.
 */
export async function leafMembers(
  tx: Transaction,
  tenant: string,
  ledgerEntryIds: readonly string[],
): Promise<JsonObject[]> {
  const rows = await tx.query<{ leaf: JsonObject }[]>(
    `SELECT json_build_object(${LEAF_MEMBERS}) AS leaf
       FROM unnest($2::uuid[]) WITH ORDINALITY n(id, place)
      CROSS JOIN LATERAL (SELECT * FROM ledger_entry l WHERE l.ledger_entry_id = n.id AND l.tenant_id = $1 OFFSET 0) l
      CROSS JOIN LATERAL (SELECT * FROM decision_record d WHERE d.decision_id = l.decision_id AND d.tenant_id = $1 OFFSET 0) d
      ORDER BY n.place`,
    [tenant, ledgerEntryIds],
  );
  return rows.map(({ leaf }) => leaf);
}
