/** A decision as it stands in a list. Times are RFC 3339 with microseconds. */
export interface DecisionListRow {
  decisionId: string;
  key: string;
  keySource: string;
  contentKey: string;
  state: string;
  outcome: { status: string; reason?: string } | null;
  action: string;
  actionVersion: number;
  subject: { type: string; id: string };
  reportingPeriod: string | null;
  model: { id: string; version: string };
  promptTemplateSha256: string;
  retrievalSnapshotId: string;
  policyVersion: string;
  effectId: string | null;
  externalRef: string | null;
  ledgerEntryId: string | null;
  receivedAt: string;
  recordedAt: string | null;
}

/**
 * How a decision stands: completed once it has an entry, else as its key's record says. A decision whose key went to
 * another decision has failed.
 */
const STATE = `CASE WHEN l.idem_key IS NOT NULL THEN 'completed' WHEN i.decision_id = d.decision_id THEN i.status ELSE 'failed' END`;

/** The members of a list row, made in the database: no time passes through a JavaScript Date. */
export const LIST_MEMBERS = `'decisionId', d.decision_id, 'key', d.idem_key, 'keySource', d.key_source, 'contentKey', content_key(d.tenant_id, d.content_hash),
  'state', ${STATE}, 'outcome', CASE WHEN l.outcome IS NOT NULL THEN json_strip_nulls(json_build_object('status', l.outcome, 'reason', l.reason)) END,
  'action', d.action, 'actionVersion', d.action_version, 'subject', json_build_object('type', d.subject_type, 'id', d.subject_id),
  'reportingPeriod', d.reporting_period, 'model', json_build_object('id', d.model_id, 'version', d.model_version),
  'promptTemplateSha256', encode(d.prompt_template_sha256, 'hex'), 'retrievalSnapshotId', d.retrieval_snapshot_id,
  'policyVersion', d.policy_version, 'effectId', l.effect_id, 'externalRef', l.external_ref, 'ledgerEntryId', l.ledger_entry_id,
  'receivedAt', rfc3339(d.received_at), 'recordedAt', rfc3339(l.recorded_at)`;

export const LIST_ROW = `json_build_object(${LIST_MEMBERS})`;

/** A decision's entry and, while it has none, the record of its key. */
const ENTRY_OR_RECORD = `
    LEFT JOIN ledger_entry l ON l.tenant_id = d.tenant_id AND l.idem_key = d.idem_key AND l.decision_id = d.decision_id
    LEFT JOIN idempotency_record i ON i.tenant_id = d.tenant_id AND i.idem_key = d.idem_key`;

export const FROM = `FROM decision_record d${ENTRY_OR_RECORD}`;

/** The same for each decision of a page. */
export const OF_PAGE = `JOIN decision_record d ON d.decision_id = p.id AND d.tenant_id = $1${ENTRY_OR_RECORD}`;
