/**
 * Where decisions are found: those that were recorded, in the copy that the reading side has of them, or, until the worker has
 * copied them, where they were recorded; and the few that have no outcome (yet). Each says in SQL what the filters, the groups
 * and the order ask of it, so that these are defined once.
 */
export interface Source {
  readonly from: string;
  readonly where: string;
  /** The row that says on what basis the decision was made: its columns are named alike in every source. */
  readonly basis: string;
  /** What a row of the answer is known by, and where it stands in the order. */
  readonly id: string;
  readonly at: string;
  readonly state: string;
  readonly outcome: string;
  readonly reason: string;
  readonly externalRef: string;
  readonly recordedAt: string;
  /** What `day` and `month` are counted by. */
  readonly countedAt: string;
  readonly hasKey: (placeholder: string) => string;
  /** Holds for what was there when a walk began: its snapshot, and the time on the database's clock. */
  readonly asOf: (snapshot: string, time: string) => string;
}

/**
 * What was recorded so long before a walk began is visible to it, whatever its transaction is called: no statement of this
 * service takes so long to commit. It keeps a walk right in a database that was restored, where transactions count anew.
 */
const SETTLED = `interval '5 minutes'`;

const isVisible = (snapshot: string): string => `pg_visible_in_snapshot(f.recorded_in::text::xid8, ${snapshot})`;

export const RECORDED: Source = {
  from: 'recorded_decision f',
  where: 'f.tenant_id = $1',
  basis: 'f',
  id: 'f.decision_id',
  at: 'f.recorded_at',
  state: `'completed'::text`,
  outcome: 'f.outcome',
  reason: 'f.reason',
  externalRef: 'f.external_ref',
  recordedAt: 'f.recorded_at',
  countedAt: 'f.recorded_at',
  hasKey: (key) =>
    `f.decision_id = (SELECT k.decision_id FROM ledger_entry k WHERE k.idem_key = ${key} AND k.tenant_id = $1)`,
  asOf: (snapshot, time) =>
    `f.recorded_at <= ${time} AND (f.recorded_at < ${time} - ${SETTLED} OR ${isVisible(snapshot)})`,
};

/** The same for what has not been copied yet. */
const UNCOPIED: Source = { ...RECORDED, from: 'uncopied_decision f' };

/** Every decision that was recorded. */
export const ALL_RECORDED: readonly Source[] = [RECORDED, UNCOPIED];

const UNFINISHED: Source = {
  from: `idempotency_record i
      JOIN decision_record f ON f.tenant_id = i.tenant_id AND f.decision_id = i.decision_id`,
  where: `i.tenant_id = $1 AND i.status <> 'completed'`,
  basis: 'f',
  id: 'f.decision_id',
  at: 'f.received_at',
  state: 'i.status',
  outcome: 'NULL::text',
  reason: 'NULL::text',
  externalRef: 'NULL::text',
  recordedAt: 'NULL::timestamptz',
  countedAt: 'NULL::timestamptz',
  hasKey: (key) => `i.idem_key = ${key}`,
  asOf: (_snapshot, time) => `f.received_at <= ${time}`,
};

/** What failed and then lost its key to another decision. */
const ABANDONED: Source = {
  ...UNFINISHED,
  from: `abandoned_decision x
      JOIN decision_record f ON f.tenant_id = x.tenant_id AND f.decision_id = x.decision_id`,
  where: 'x.tenant_id = $1',
  state: `'failed'::text`,
  hasKey: (key) => `f.idem_key = ${key}`,
};

/** Every decision is in one of these, and at any moment in no two. */
export const DECISIONS: readonly Source[] = [...ALL_RECORDED, UNFINISHED, ABANDONED];

/** What was unfinished when a walk began and has an outcome by now: it keeps the place that it had then. */
export const RECORDED_SINCE: readonly Source[] = ALL_RECORDED.map((source) => ({
  ...source,
  where: `${source.where} AND f.received_at <> f.recorded_at`,
  at: 'f.received_at',
  asOf: (snapshot, time) =>
    `f.recorded_at >= ${time} - ${SETTLED} AND f.received_at <= ${time} AND NOT ${isVisible(snapshot)}`,
}));
