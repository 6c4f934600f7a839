/**
 * The filters of the reading side, each defined here once: the parameter's name, the condition that it sets, and, where
 * the text is not compared as it stands, what it is turned into. `d` is the decision, `l` its ledger entry.
 */
interface Filter {
  readonly condition: (placeholder: string) => string;
  readonly value?: (text: string, tenant: string) => string;
}

const ofAnyAttempt = (test: string): string =>
  `EXISTS (SELECT FROM attempt a WHERE a.tenant_id = d.tenant_id AND a.decision_id = d.decision_id AND ${test})`;

/**
 * Found by the one form that each of the others gives, and then compared with the forms as they were passed on: the UUID
 * lacks six of their bits, and eight of their digits.
 */
const ofDownstreamKey = (p: string): string => {
  const hex = `encode(downstream_digest(d.tenant_id, d.key_source, d.idem_key, d.content_hash), 'hex')`;
  return `d.downstream_uuid4 = downstream_uuid4(decode(left(replace(${p}, '-', ''), 32), 'hex'))
    AND ${p} IN (d.downstream_uuid4::text, left(${hex}, 32), ${hex})`;
};

/** The 40 hex digits of a content key of this tenant; of any other text, digits that no decision has. */
function contentHashHex(text: string, tenant: string): string {
  const prefix = `dk_${tenant}_`;
  const hex = text.slice(prefix.length);
  return text.startsWith(prefix) && /^[0-9a-f]{40}$/.test(hex) ? hex : '';
}

/**
 * How a decision stands: completed once it has an entry, else as its key's record says. A decision whose key went to
 * another decision has failed.
 */
export const STATE = `CASE WHEN l.idem_key IS NOT NULL THEN 'completed' WHEN i.decision_id = d.decision_id THEN i.status ELSE 'failed' END`;

export const DECISION_FILTERS = {
  action: { condition: (p) => `d.action = ${p}` },
  actionVersion: { condition: (p) => `d.action_version = ${p}::integer` },
  subjectType: { condition: (p) => `d.subject_type = ${p}` },
  subjectId: { condition: (p) => `d.subject_id = ${p}` },
  modelId: { condition: (p) => `d.model_id = ${p}` },
  modelVersion: { condition: (p) => `d.model_version = ${p}` },
  promptTemplateSha256: { condition: (p) => `d.prompt_template_sha256 = decode(${p}, 'hex')` },
  retrievalSnapshotId: { condition: (p) => `d.retrieval_snapshot_id = ${p}` },
  policyVersion: { condition: (p) => `d.policy_version = ${p}` },
  reportingPeriod: { condition: (p) => `d.reporting_period = ${p}` },
  outcome: { condition: (p) => `l.outcome = ${p}` },
  reason: { condition: (p) => `l.reason = ${p}` },
  state: { condition: (p) => `${STATE} = ${p}` },
  key: { condition: (p) => `d.idem_key = ${p}` },
  contentKey: { condition: (p) => `d.content_hash = decode(${p}, 'hex')`, value: contentHashHex },
  downstreamKey: { condition: ofDownstreamKey },
  externalRef: { condition: (p) => `l.external_ref = ${p}` },
  stepId: { condition: (p) => ofAnyAttempt(`a.evidence->>'stepId' = ${p}`) },
  runId: { condition: (p) => ofAnyAttempt(`a.evidence->>'runId' = ${p}`) },
  credentialId: { condition: (p) => ofAnyAttempt(`a.credential_id = ${p}`) },
  decisionId: { condition: (p) => `d.decision_id = ${p}::uuid` },
  recordedFrom: { condition: (p) => `l.recorded_at >= ${p}::timestamptz` },
  recordedTo: { condition: (p) => `l.recorded_at < ${p}::timestamptz` },
} satisfies Record<string, Filter>;

export type DecisionFilterName = keyof typeof DECISION_FILTERS;

/** The filters of a question; all of them must hold. */
export type DecisionFilters = Partial<Record<DecisionFilterName, string>>;

/** The condition that all the filters make together, and its parameters, numbered from `first`. */
export function whereOf(
  tenant: string,
  filters: DecisionFilters,
  first: number,
): { sql: string; parameters: string[] } {
  const table: Record<string, Filter> = DECISION_FILTERS;
  const conditions: string[] = [];
  const parameters: string[] = [];
  for (const [name, text] of Object.entries(filters)) {
    const filter = table[name];
    if (filter === undefined || text === undefined) continue;
    conditions.push(` AND ${filter.condition(`$${first + parameters.length}`)}`);
    parameters.push(filter.value?.(text, tenant) ?? text);
  }
  return { sql: conditions.join(''), parameters };
}
