import type { AttemptView, DecisionListRow } from '#ledger';

/** The filters of a question, as a query carries them. */
export type Filters = Readonly<Record<string, string>>;

type Value = string | number | null;

/** What a test knows of a tenant's records: every row, without a filter. */
export interface Records {
  readonly decisions: readonly DecisionListRow[];
  readonly attempts: readonly AttemptView[];
}

/** What a filter or a group asks of a decision. Nothing of the service's own tables is used here. */
const OF_DECISION: Readonly<Record<string, (row: DecisionListRow) => Value>> = {
  action: ({ action }) => action,
  actionVersion: ({ actionVersion }) => actionVersion,
  subjectType: ({ subject }) => subject.type,
  subjectId: ({ subject }) => subject.id,
  modelId: ({ model }) => model.id,
  modelVersion: ({ model }) => model.version,
  promptTemplateSha256: (row) => row.promptTemplateSha256,
  retrievalSnapshotId: (row) => row.retrievalSnapshotId,
  policyVersion: (row) => row.policyVersion,
  reportingPeriod: (row) => row.reportingPeriod,
  outcome: ({ outcome }) => outcome?.status ?? null,
  reason: ({ outcome }) => outcome?.reason ?? null,
  state: ({ state }) => state,
  key: ({ key }) => key,
  contentKey: ({ contentKey }) => contentKey,
  externalRef: ({ externalRef }) => externalRef,
  decisionId: ({ decisionId }) => decisionId,
};

const OF_ATTEMPT: Readonly<Record<string, (row: AttemptView) => Value>> = {
  stepId: ({ evidence }) => textOf(evidence?.['stepId']),
  runId: ({ evidence }) => textOf(evidence?.['runId']),
  credentialId: ({ credentialId }) => credentialId,
  disposition: ({ disposition }) => disposition,
};

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);

/** Microseconds since 1970 of a time with any offset. */
export function microseconds(time: string): bigint {
  const [, toTheSecond, fraction = '', offset] = /^(.{19})(?:\.(\d{1,6}))?(Z|[+-]\d\d:\d\d)$/.exec(time) ?? [];
  return BigInt(Date.parse(`${toTheSecond}${offset}`)) * 1000n + BigInt(fraction.padEnd(6, '0'));
}

function isWithin(time: string | null, { recordedFrom, recordedTo }: Filters): boolean {
  if (recordedFrom === undefined && recordedTo === undefined) return true;
  if (time === null) return false;
  const at = microseconds(time);
  return (
    (recordedFrom === undefined || at >= microseconds(recordedFrom)) &&
    (recordedTo === undefined || at < microseconds(recordedTo))
  );
}

const isHow = <Row>(values: Readonly<Record<string, (row: Row) => Value>>, row: Row, filters: Filters): boolean =>
  Object.entries(filters).every(([name, wanted]) => {
    const value = values[name];
    return value === undefined || String(value(row) ?? '') === wanted;
  });

/** The decisions that all filters hold for, in the order of recording. */
export function decisionsFor({ decisions, attempts }: Records, filters: Filters): DecisionListRow[] {
  const ofAttempts = Object.entries(filters).filter(([name]) => name in OF_ATTEMPT);
  return decisions
    .filter(
      (row) =>
        isHow(OF_DECISION, row, filters) &&
        isWithin(row.recordedAt, filters) &&
        // Each of these may be another attempt's.
        ofAttempts.every(([name, wanted]) =>
          attempts.some((one) => one.decisionId === row.decisionId && isHow(OF_ATTEMPT, one, { [name]: wanted })),
        ),
    )
    .toSorted(by((row) => `${row.recordedAt ?? row.receivedAt} ${row.decisionId}`));
}

/** The attempts that all filters hold for, in the order of arrival. */
export function attemptsFor({ decisions, attempts }: Records, filters: Filters): AttemptView[] {
  const byId = new Map(decisions.map((row) => [row.decisionId, row]));
  const asks = Object.keys(filters).some((name) => name in OF_DECISION);
  return attempts
    .filter((one) => {
      const decision = byId.get(one.decisionId ?? '');
      return (
        isHow(OF_ATTEMPT, one, filters) &&
        isWithin(one.receivedAt, filters) &&
        (!asks || (decision !== undefined && isHow(OF_DECISION, decision, filters)))
      );
    })
    .toSorted(by((one) => `${one.receivedAt} ${one.attemptId}`));
}

export const by =
  <Row>(key: (row: Row) => string) =>
  (a: Row, b: Row): number =>
    key(a) < key(b) ? -1 : 1;

const periods = (time: string | null): Readonly<Record<string, Value>> => ({
  day: time?.slice(0, 10) ?? null,
  month: time?.slice(0, 7) ?? null,
});

/** The groups of some decisions, each as text, in no order that counts. */
export function groupsOfDecisions(rows: readonly DecisionListRow[], names: readonly string[]): string[] {
  return groups(rows, names, (row, name) => (OF_DECISION[name] ?? (() => periods(row.recordedAt)[name] ?? null))(row));
}

export function groupsOfAttempts(
  { decisions }: Records,
  rows: readonly AttemptView[],
  names: readonly string[],
): string[] {
  const byId = new Map(decisions.map((row) => [row.decisionId, row]));
  return groups(rows, names, (one, name) => {
    if (name === 'day' || name === 'month') return periods(one.receivedAt)[name] ?? null;
    const own = OF_ATTEMPT[name];
    const decision = byId.get(one.decisionId ?? '');
    return own === undefined ? (decision === undefined ? null : (OF_DECISION[name]?.(decision) ?? null)) : own(one);
  });
}

function groups<Row>(
  rows: readonly Row[],
  names: readonly string[],
  valueOf: (row: Row, name: string) => Value,
): string[] {
  const counts = new Map<string, number>();
  for (const row of rows) {
    const values = JSON.stringify(names.map((name) => valueOf(row, name)));
    counts.set(values, (counts.get(values) ?? 0) + 1);
  }
  return [...counts].map(([values, count]) => groupText(JSON.parse(values), count)).toSorted();
}

/** A group as one text, to compare it whatever the order of its members. */
export const groupText = (values: readonly unknown[], count: unknown): string =>
  `${JSON.stringify(values)} ${String(count)}`;

/** What a test may ask of a row, as the text that a query carries. */
export const DECISION_FACTS: readonly string[] = Object.keys(OF_DECISION);
export const factOf = (row: DecisionListRow, name: string): string | null => {
  const value = OF_DECISION[name]?.(row) ?? null;
  return value === null ? null : String(value);
};
export const attemptFactOf = (row: AttemptView, name: string): string | null => {
  const value = OF_ATTEMPT[name]?.(row) ?? null;
  return value === null ? null : String(value);
};
