import type { Transaction } from '#database';
import { EVERY } from './attempt-source.js';
import { ATTEMPT_FILTERS, DECISION_FILTERS, whereOf, type AttemptFilters } from './filters.js';
import { Parameters } from './parameters.js';
import { ALL_RECORDED, DECISIONS, RECORDED, type Source } from './source.js';
import type { Walk } from './walk.js';

/**
 * Attempts are found by what is asked of their decisions from one of two sides, because their tables have no index in
 * common. Where few decisions are meant, their attempts are gathered and put in order. Where they are many, attempts are
 * looked through in order until the page is full: near at hand, near the time of those decisions, or far.
 */
const FEW = 4_000;
export const NEAR = 5_000;

/** Decisions are away if such a part of all time lies before them, and are worth the way there if they leave out that much. */
const AWAY = 0.02;
const HALF = 0.5;

export type Way = (parameters: Parameters) => Pick<Walk, 'sources' | 'sieve' | 'conditionOf'>;

const only = (filters: AttemptFilters, isMeant: (name: string) => boolean): AttemptFilters =>
  Object.fromEntries(Object.entries(filters).filter(([name]) => isMeant(name)));

const isOwn = (name: string): boolean => name in ATTEMPT_FILTERS;

export const conditionsOf =
  (filters: AttemptFilters, parameters: Parameters) =>
  (source: Source): string =>
    whereOf(ATTEMPT_FILTERS, filters, source, parameters);

/** The decisions that are meant, from each of their sources. */
function decisionsOf(filters: AttemptFilters, parameters: Parameters, sources = DECISIONS, more = ''): string[] {
  const asked = only(filters, (name) => !isOwn(name));
  return sources.map(
    (source) =>
      `SELECT f.decision_id FROM ${source.from} WHERE ${source.where}${more}${whereOf(DECISION_FILTERS, asked, source, parameters)}`,
  );
}

async function areAtMost(
  tx: Transaction,
  most: number,
  { values }: Parameters,
  rows: readonly string[],
): Promise<boolean> {
  const [counted] = await tx.query<{ n: number }[]>(
    `SELECT count(*)::integer AS n FROM (${rows.join(' UNION ALL ')} LIMIT ${most + 1}) few`,
    values,
  );
  return counted !== undefined && counted.n <= most;
}

export async function fewDecisions(tx: Transaction, tenant: string, filters: AttemptFilters): Promise<boolean> {
  const parameters = new Parameters(tenant);
  return areAtMost(tx, FEW, parameters, decisionsOf(filters, parameters));
}

/** Few by what they say themselves, if anything is asked of that. */
export async function fewAttempts(tx: Transaction, tenant: string, filters: AttemptFilters): Promise<boolean> {
  const own = only(filters, isOwn);
  if (Object.keys(own).length === 0) return false;
  const parameters = new Parameters(tenant);
  const attempts = `SELECT a.attempt_id FROM ${EVERY.from} WHERE ${EVERY.where}${conditionsOf(own, parameters)(EVERY)}`;
  return areAtMost(tx, FEW, parameters, [attempts]);
}

/** From the decisions. */
export const gather =
  (filters: AttemptFilters): Way =>
  (parameters) => ({
    sources: [
      {
        ...EVERY,
        from: `(${decisionsOf(filters, parameters).join(' UNION ALL ')}) these
      CROSS JOIN LATERAL (SELECT * FROM attempt t WHERE t.decision_id = these.decision_id AND t.tenant_id = $1 OFFSET 0) a`,
      },
    ],
    conditionOf: conditionsOf(only(filters, isOwn), parameters),
  });

/** What the index by time does not say of an attempt. */
const LATER = ['stepId', 'runId'];

/** What each filter by itself finds in the order of recording, from an index of the copy. */
const IN_ORDER = [
  'action',
  'actionVersion',
  'subjectType',
  'subjectId',
  'modelId',
  'modelVersion',
  'promptTemplateSha256',
  'retrievalSnapshotId',
  'policyVersion',
  'reportingPeriod',
  'reason',
];

/** The first time, or the last, at which what is meant can have been recorded: none of the filters finds anything beyond it. */
function endOf(end: 'min' | 'max', filters: AttemptFilters, parameters: Parameters): string {
  const ends = Object.entries(filters)
    .filter(([name]) => IN_ORDER.includes(name))
    .map(
      ([name, value]) =>
        `(SELECT ${end}(f.recorded_at) FROM ${RECORDED.from} WHERE ${RECORDED.where}${whereOf(DECISION_FILTERS, { [name]: value }, RECORDED, parameters)})`,
    );
  return `${end === 'min' ? 'greatest' : 'least'}(${ends.join(', ')})`;
}

/** Whether the decisions that are meant are all recorded away from where the list begins, and within a part of all time. */
export async function areAway(
  tx: Transaction,
  tenant: string,
  filters: AttemptFilters,
  order: string,
): Promise<boolean> {
  if (!Object.keys(filters).some((name) => IN_ORDER.includes(name))) return false;
  const parameters = new Parameters(tenant);
  const all = (end: string): string => `(SELECT ${end}(f.recorded_at) FROM ${RECORDED.from} WHERE ${RECORDED.where})`;
  const [found] = await tx.query<{ before: number | null; after: number | null }[]>(
    `SELECT extract(epoch FROM t.first - t.begin)::double precision / nullif(extract(epoch FROM t.end - t.begin), 0)::double precision AS before,
            extract(epoch FROM t.end - t.last)::double precision / nullif(extract(epoch FROM t.end - t.begin), 0)::double precision AS after
       FROM (SELECT ${endOf('min', filters, parameters)} AS first, ${endOf('max', filters, parameters)} AS last, ${all('min')} AS begin, ${all('max')} AS "end") t`,
    parameters.values,
  );
  const { before, after } = { before: found?.before ?? 0, after: found?.after ?? 0 };
  return (order === 'asc' ? before : after) > AWAY && before + after > HALF;
}

/**
 * Holds for what may be an attempt of the decisions that are meant, if they are away: their ids are of that time too, which
 * the index tells of every attempt that it passes on the way.
 */
function mayBeOfThose(filters: AttemptFilters, order: 'asc' | 'desc', parameters: Parameters): string {
  const [first, last] = [endOf('min', filters, parameters), endOf('max', filters, parameters)];
  const others = decisionsOf(
    filters,
    parameters,
    DECISIONS.filter((source) => source !== RECORDED),
  );
  const recorded = `SELECT f.decision_id FROM ${RECORDED.from} WHERE ${RECORDED.where} AND f.recorded_at >= ${first} AND f.recorded_at <= ${last}`;
  const all = [recorded, ...others].join(' UNION ALL ');
  return ` AND a.decision_id ${order === 'asc' ? '>=' : '<='} (SELECT those.decision_id FROM (${all}) those ORDER BY 1 ${order} LIMIT 1)`;
}

/** How attempts are looked through. */
interface Looking {
  /** Few will be looked at: then each names its decision, and nothing is gathered beforehand. */
  readonly isNear?: boolean;
  /** After how many it stops; otherwise it goes to the end. */
  readonly most?: number;
  /** The order, where what is meant is away: then it goes straight there. */
  readonly towards?: 'asc' | 'desc';
}

/** From the attempts. */
export const lookThrough =
  (filters: AttemptFilters, { isNear = false, most, towards }: Looking): Way =>
  (parameters) => {
    const named = decisionsOf(filters, parameters, DECISIONS, ' AND f.decision_id = c.named').map((decision, index) =>
      // OFFSET 0 keeps PostgreSQL from gathering all that were recorded.
      isNear && ALL_RECORDED.some((source) => source === DECISIONS[index])
        ? `EXISTS (${decision} OFFSET 0)`
        : `EXISTS (${decision})`,
    );
    // On the way only the index by time is read: what it does not say is asked of those that are met there.
    const isLater = (name: string): boolean => most !== undefined && towards !== undefined && LATER.includes(name);
    const later = only(filters, isLater);
    const conditions = [
      `(${named.join(' OR ')})`,
      ...(Object.keys(later).length === 0
        ? []
        : [
            `EXISTS (SELECT FROM ${EVERY.from} WHERE ${EVERY.where} AND a.attempt_id = c.id${conditionsOf(later, parameters)(EVERY)} OFFSET 0)`,
          ]),
    ];
    const where = towards === undefined ? EVERY.where : `${EVERY.where}${mayBeOfThose(filters, towards, parameters)}`;
    return {
      sources: [{ ...EVERY, where }],
      conditionOf: conditionsOf(
        only(filters, (name) => isOwn(name) && !isLater(name)),
        parameters,
      ),
      sieve: { column: 'a.decision_id', condition: conditions.join(' AND '), most: most ?? null },
    };
  };
