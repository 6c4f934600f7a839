import type { Parameters } from './parameters.js';
import type { Source } from './source.js';

/**
 * The filters of the reading side, each defined here once for lists, counts and exports: the parameter's name, the condition
 * that it sets on a source, and, where the text is not compared as it stands, what it is turned into.
 */
interface Filter {
  readonly condition: (placeholder: string, source: Source) => string;
  readonly value?: (text: string, tenant: string) => string;
}

const ofAnyAttempt = (test: string, { basis }: Source): string =>
  `${basis}.decision_id IN (SELECT a.decision_id FROM attempt a WHERE a.tenant_id = $1 AND ${test})`;

/**
 * Found by the one form that each of the others gives, and then compared with the forms as they were passed on: the UUID
 * lacks six of their bits, and eight of their digits.
 */
function ofDownstreamKey(p: string, { basis }: Source): string {
  const hex = `encode(downstream_digest(o.tenant_id, o.key_source, o.idem_key, o.content_hash), 'hex')`;
  return `${basis}.decision_id IN (SELECT o.decision_id FROM decision_record o
    WHERE o.downstream_uuid4 = downstream_uuid4(decode(left(replace(${p}, '-', ''), 32), 'hex')) AND o.tenant_id = $1
      AND ${p} IN (o.downstream_uuid4::text, left(${hex}, 32), ${hex}))`;
}

/** The 40 hex digits of a content key of this tenant; of any other text, digits that no decision has. */
function contentHashHex(text: string, tenant: string): string {
  const prefix = `dk_${tenant}_`;
  const hex = text.slice(prefix.length);
  return text.startsWith(prefix) && /^[0-9a-f]{40}$/.test(hex) ? hex : '';
}

export const DECISION_FILTERS = {
  action: { condition: (p, { basis }) => `${basis}.action = ${p}` },
  actionVersion: { condition: (p, { basis }) => `${basis}.action_version = ${p}::integer` },
  subjectType: { condition: (p, { basis }) => `${basis}.subject_type = ${p}` },
  subjectId: { condition: (p, { basis }) => `${basis}.subject_id = ${p}` },
  modelId: { condition: (p, { basis }) => `${basis}.model_id = ${p}` },
  modelVersion: { condition: (p, { basis }) => `${basis}.model_version = ${p}` },
  promptTemplateSha256: { condition: (p, { basis }) => `${basis}.prompt_template_sha256 = decode(${p}, 'hex')` },
  retrievalSnapshotId: { condition: (p, { basis }) => `${basis}.retrieval_snapshot_id = ${p}` },
  policyVersion: { condition: (p, { basis }) => `${basis}.policy_version = ${p}` },
  reportingPeriod: { condition: (p, { basis }) => `${basis}.reporting_period = ${p}` },
  outcome: { condition: (p, { outcome }) => `${outcome} = ${p}` },
  reason: { condition: (p, { reason }) => `${reason} = ${p}` },
  state: { condition: (p, { state }) => `${state} = ${p}` },
  key: { condition: (p, { hasKey }) => hasKey(p) },
  contentKey: {
    condition: (p, { basis }) =>
      `${basis}.decision_id IN (SELECT c.decision_id FROM decision_record c WHERE c.content_hash = decode(${p}, 'hex') AND c.tenant_id = $1)`,
    value: contentHashHex,
  },
  downstreamKey: { condition: ofDownstreamKey },
  externalRef: { condition: (p, { externalRef }) => `${externalRef} = ${p}` },
  stepId: { condition: (p, source) => ofAnyAttempt(`a.step_id = ${p}`, source) },
  runId: { condition: (p, source) => ofAnyAttempt(`a.run_id = ${p}`, source) },
  credentialId: { condition: (p, source) => ofAnyAttempt(`a.credential_id = ${p}`, source) },
  decisionId: { condition: (p, { basis }) => `${basis}.decision_id = ${p}::uuid` },
  recordedFrom: { condition: (p, { recordedAt }) => `${recordedAt} >= ${p}::timestamptz` },
  recordedTo: { condition: (p, { recordedAt }) => `${recordedAt} < ${p}::timestamptz` },
} satisfies Record<string, Filter>;

/** Of an attempt itself; what is not here is its decision's. */
export const ATTEMPT_FILTERS = {
  disposition: { condition: (p) => `a.disposition = ${p}` },
  stepId: { condition: (p) => `a.step_id = ${p}` },
  runId: { condition: (p) => `a.run_id = ${p}` },
  credentialId: { condition: (p) => `a.credential_id = ${p}` },
  recordedFrom: { condition: (p) => `a.received_at >= ${p}::timestamptz` },
  recordedTo: { condition: (p) => `a.received_at < ${p}::timestamptz` },
} satisfies Record<string, Filter>;

export type DecisionFilterName = keyof typeof DECISION_FILTERS;
export type AttemptFilterName = DecisionFilterName | keyof typeof ATTEMPT_FILTERS;

/** The filters of a question; all of them must hold. */
export type DecisionFilters = Partial<Record<DecisionFilterName, string>>;
export type AttemptFilters = Partial<Record<AttemptFilterName, string>>;

/** The condition that all the filters make together on a source, as SQL that begins with AND. */
export function whereOf(
  table: Readonly<Record<string, Filter>>,
  filters: Readonly<Record<string, string | undefined>>,
  source: Source,
  parameters: Parameters,
): string {
  return Object.entries(filters)
    .map(([name, text]) => {
      const filter = table[name];
      if (filter === undefined || text === undefined) return '';
      return ` AND ${filter.condition(parameters.add(filter.value?.(text, parameters.tenant) ?? text), source)}`;
    })
    .join('');
}

/** Whether a filter asks something of an attempt's decision. */
export const asksOfDecision = (filters: AttemptFilters): boolean =>
  Object.keys(filters).some((name) => !(name in ATTEMPT_FILTERS));
