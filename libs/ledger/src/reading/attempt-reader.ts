import { Injectable } from '@nestjs/common';
import { Database, type Transaction } from '#database';
import { asksOfDecision, ATTEMPT_FILTERS, DECISION_FILTERS, whereOf, type AttemptFilters } from './filters.js';
import { countedOf, countSql, groupsByDecision, type Counted, type GroupName } from './groups.js';
import { Parameters } from './parameters.js';
import { lookForFew, lookForMany } from './settings.js';
import { ALL_RECORDED, DECISIONS, RECORDED, type Source } from './source.js';
import { cursorOf, pageOf, walk, type Page, type Paging, type Walk, type Walked } from './walk.js';

/** One arrival of a request for a key. */
export interface AttemptView {
  attemptId: string;
  /** Null where the arrival ended before a decision could be looked at. */
  decisionId: string | null;
  key: string;
  action: string;
  disposition: string;
  won: boolean;
  evidence: Record<string, unknown> | null;
  requestId: string;
  credentialId: string;
  receivedAt: string;
  latencyMs: number;
  problem?: string;
}

const ATTEMPT_ROW = `json_build_object('attemptId', a.attempt_id, 'decisionId', a.decision_id, 'key', a.idem_key, 'action', a.action,
  'disposition', a.disposition, 'won', a.won, 'evidence', a.evidence, 'requestId', a.request_id, 'credentialId', a.credential_id,
  'receivedAt', rfc3339(a.received_at), 'latencyMs', round(a.latency_ms::numeric, 3), 'problem', a.problem)`;

type AttemptRow = Omit<AttemptView, 'problem'> & { problem: string | null };

const OF_PAGE = 'JOIN attempt a ON a.attempt_id = p.id AND a.tenant_id = $1';

const FILTERS = { ...DECISION_FILTERS, ...ATTEMPT_FILTERS };

const OF_ATTEMPT = {
  id: 'a.attempt_id',
  at: 'a.received_at',
  countedAt: 'a.received_at',
  asOf: (_snapshot: string, time: string) => `a.received_at <= ${time}`,
};

const ofDecisionsIn = (source: Source): Source => ({
  ...source,
  ...OF_ATTEMPT,
  from: `${source.from} JOIN attempt a ON a.decision_id = f.decision_id AND a.tenant_id = $1`,
});

/** Attempts whose decisions are asked about too: found from either side. */
const BY_DECISION = DECISIONS.map(ofDecisionsIn);

/** Every attempt, of which no more is asked than what it says itself. */
const EVERY: Source = {
  ...OF_ATTEMPT,
  from: 'attempt a',
  where: 'a.tenant_id = $1',
  basis: 'd',
  state: 'NULL::text',
  outcome: 'NULL::text',
  reason: 'NULL::text',
  externalRef: 'NULL::text',
  recordedAt: 'NULL::timestamptz',
  hasKey: () => 'false',
};

const OF_NO_DECISION: Source = {
  ...EVERY,
  from: 'attempt a LEFT JOIN decision_record d ON false',
  where: `${EVERY.where} AND a.decision_id IS NULL`,
};

/** The decision of each attempt is looked up: that takes as long as there are attempts, however many decisions there are. */
const OF_RECORDED: Source = {
  ...ofDecisionsIn(RECORDED),
  from: `attempt a
      CROSS JOIN LATERAL (SELECT * FROM recorded_decision r WHERE r.decision_id = a.decision_id AND r.tenant_id = $1 OFFSET 0) f`,
  where: `${EVERY.where} AND ${RECORDED.where}`,
};

/** Every attempt with what is known of its decision, if there is one. */
const WITH_DECISION = [
  ...DECISIONS.map((source) => (source === RECORDED ? OF_RECORDED : ofDecisionsIn(source))),
  OF_NO_DECISION,
];

/**
 * Attempts are found by what is asked of their decisions from one of two sides, because their tables have no index in
 * common. Where few decisions are meant, their attempts are gathered and put in order. Where they are many, attempts are
 * looked through in order until the page is full: near at hand, or, where those decisions are all of another time, far.
 */
const FEW = 4_000;
const NEAR = 5_000;

type Way = (parameters: Parameters) => Pick<Walk, 'sources' | 'sieve' | 'conditionOf'>;

const only = (filters: AttemptFilters, isMeant: (name: string) => boolean): AttemptFilters =>
  Object.fromEntries(Object.entries(filters).filter(([name]) => isMeant(name)));

const isOwn = (name: string): boolean => name in ATTEMPT_FILTERS;

const conditionsOf =
  (filters: AttemptFilters, parameters: Parameters) =>
  (source: Source): string =>
    whereOf(ATTEMPT_FILTERS, filters, source, parameters);

/** The decisions that are meant, from each of their sources. */
function decisionsOf(filters: AttemptFilters, parameters: Parameters, more = ''): string[] {
  const asked = only(filters, (name) => !isOwn(name));
  return DECISIONS.map(
    (source) =>
      `SELECT f.decision_id FROM ${source.from} WHERE ${source.where}${more}${whereOf(DECISION_FILTERS, asked, source, parameters)}`,
  );
}

/** The attempts that are meant by what they say themselves. */
const attemptsOf = (filters: AttemptFilters, parameters: Parameters): string[] => [
  `SELECT a.attempt_id FROM ${EVERY.from} WHERE ${EVERY.where}${conditionsOf(only(filters, isOwn), parameters)(EVERY)}`,
];

async function areAtMost(
  tx: Transaction,
  limit: number,
  tenant: string,
  rowsOf: (parameters: Parameters) => string[],
): Promise<boolean> {
  const parameters = new Parameters(tenant);
  const rows = rowsOf(parameters).join(' UNION ALL ');
  const [counted] = await tx.query<{ n: number }[]>(
    `SELECT count(*)::integer AS n FROM (${rows} LIMIT ${limit + 1}) few`,
    parameters.values,
  );
  return counted !== undefined && counted.n <= limit;
}

/** From the decisions. */
const gather =
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

/** From the attempts, after so many of which it stops, or to the end. */
const lookThrough =
  (filters: AttemptFilters, most: number | null): Way =>
  (parameters) => {
    const named = decisionsOf(filters, parameters, ' AND f.decision_id = c.named')
      // Recorded decisions are many: OFFSET 0 keeps PostgreSQL from gathering them all for the few rows near at hand.
      .map(
        (decision, index) =>
          `EXISTS (${decision}${most !== null && ALL_RECORDED.some((source) => source === DECISIONS[index]) ? ' OFFSET 0' : ''})`,
      );
    return {
      sources: [EVERY],
      conditionOf: conditionsOf(only(filters, isOwn), parameters),
      sieve: { column: 'a.decision_id', condition: `(${named.join(' OR ')})`, most },
    };
  };

/** Answers questions about arrivals: every one of them is there, whatever became of it. */
@Injectable()
export class AttemptReader {
  constructor(private readonly database: Database) {}

  /** @throws Problem `validation-failed` for a cursor that belongs to another question, or to none */
  async list(tenant: string, filters: AttemptFilters, paging: Paging): Promise<Page<AttemptView>> {
    const question = ['attempts', tenant, Object.entries(filters).toSorted()];
    const from = cursorOf(question, paging);
    const walked = await this.database.transaction(tenant, async (tx) => {
      const by = (way: Way): Promise<Walked<AttemptRow>[]> => {
        const parameters = new Parameters(tenant);
        const shown = { question, parameters, isOverMovingRows: true, row: ATTEMPT_ROW, joins: OF_PAGE };
        return walk<AttemptRow>(tx, { ...shown, ...way(parameters) }, paging, from);
      };
      await lookForFew(tx);
      if (!asksOfDecision(filters))
        return by((parameters) => ({ sources: [EVERY], conditionOf: conditionsOf(filters, parameters) }));
      if (await areAtMost(tx, FEW, tenant, (parameters) => decisionsOf(filters, parameters)))
        return by(gather(filters));
      const near = await by(lookThrough(filters, NEAR));
      // Where there are no more attempts than it looked through, it has found them all.
      if (
        near.length > paging.limit ||
        (await areAtMost(tx, NEAR, tenant, (parameters) => attemptsOf(filters, parameters)))
      )
        return near;
      await lookForMany(tx);
      return by(lookThrough(filters, null));
    });
    const { items, nextCursor } = pageOf(walked, paging.limit);
    return { items: items.map(({ problem, ...item }) => (problem === null ? item : { ...item, problem })), nextCursor };
  }

  /** How many arrivals the filters hold for. @throws Problem `validation-failed` for too many groups */
  async count(tenant: string, filters: AttemptFilters, groupBy: readonly GroupName[]): Promise<Counted> {
    const parameters = new Parameters(tenant);
    const sources = asksOfDecision(filters) ? BY_DECISION : groupsByDecision(groupBy) ? WITH_DECISION : [EVERY];
    const sql = countSql(sources, (source) => whereOf(FILTERS, filters, source, parameters), groupBy);
    const rows = await this.database.transaction(tenant, async (tx) => {
      await lookForMany(tx);
      return tx.query<{ counted: Record<string, unknown> }[]>(sql, parameters.values);
    });
    return countedOf(rows, groupBy);
  }
}
