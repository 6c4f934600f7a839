import { Injectable } from '@nestjs/common';
import { Database, type Transaction } from '#database';
import { asksOfDecision, ATTEMPT_FILTERS, DECISION_FILTERS, whereOf, type AttemptFilters } from './filters.js';
import { countedOf, countSql, groupsByDecision, type Counted, type GroupName } from './groups.js';
import { Parameters } from './parameters.js';
import { DECISIONS, type Source } from './source.js';
import { cursorOf, pageOf, walk, type Page, type Paging, type Sieve, type Walk, type Walked } from './walk.js';

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

/** Every attempt, and what is known of its decision, if there is one. */
const WITH_DECISION: Source = {
  ...OF_ATTEMPT,
  from: `attempt a
      LEFT JOIN decision_record d ON d.decision_id = a.decision_id AND d.tenant_id = a.tenant_id
      LEFT JOIN (SELECT * FROM recorded_decision UNION ALL SELECT * FROM uncopied_decision) f ON f.decision_id = a.decision_id AND f.tenant_id = a.tenant_id
      LEFT JOIN idempotency_record i ON f.decision_id IS NULL AND i.idem_key = d.idem_key AND i.tenant_id = d.tenant_id AND i.decision_id = d.decision_id`,
  where: 'a.tenant_id = $1',
  basis: 'd',
  state: `CASE WHEN f.decision_id IS NOT NULL THEN 'completed' WHEN d.decision_id IS NOT NULL THEN coalesce(i.status, 'failed') END`,
  outcome: 'f.outcome',
  reason: 'f.reason',
  externalRef: 'f.external_ref',
  recordedAt: 'f.recorded_at',
  hasKey: (key) => `d.idem_key = ${key}`,
};

const EVERY: Source = { ...WITH_DECISION, from: 'attempt a' };

/**
 * Attempts are found by what is asked of their decisions from one of two sides, because their tables have no index in
 * common. Where few decisions are meant, their attempts are gathered and put in order. Where they are many, attempts are
 * looked through in order until the page is full: near at hand, or, where those decisions are all of another time, far.
 */
const FEW = 4_000;
const NEAR = 5_000;

const ownOf = (filters: AttemptFilters): AttemptFilters =>
  Object.fromEntries(Object.entries(filters).filter(([name]) => name in ATTEMPT_FILTERS));

function decisionsOf(filters: AttemptFilters, parameters: Parameters, more = ''): string[] {
  const asked = Object.fromEntries(Object.entries(filters).filter(([name]) => !(name in ATTEMPT_FILTERS)));
  return DECISIONS.map(
    (source) =>
      `SELECT f.decision_id FROM ${source.from} WHERE ${source.where}${more}${whereOf(DECISION_FILTERS, asked, source, parameters)}`,
  );
}

async function areFew(tx: Transaction, tenant: string, filters: AttemptFilters): Promise<boolean> {
  const parameters = new Parameters(tenant);
  const decisions = decisionsOf(filters, parameters).join(' UNION ALL ');
  const [counted] = await tx.query<{ n: number }[]>(
    `SELECT count(*)::integer AS n FROM (${decisions} LIMIT ${FEW + 1}) few`,
    parameters.values,
  );
  return counted !== undefined && counted.n <= FEW;
}

const ofThese = (filters: AttemptFilters, parameters: Parameters): Source => ({
  ...EVERY,
  from: `(${decisionsOf(filters, parameters).join(' UNION ALL ')}) these
      CROSS JOIN LATERAL (SELECT * FROM attempt t WHERE t.decision_id = these.decision_id AND t.tenant_id = $1 OFFSET 0) a`,
});

const sieveOf = (filters: AttemptFilters, parameters: Parameters, most: number | null): Sieve => ({
  column: 'a.decision_id',
  condition: `(${decisionsOf(filters, parameters, ' AND f.decision_id = c.named')
    // Recorded decisions are many: OFFSET 0 keeps PostgreSQL from gathering them all for the few rows near at hand.
    .map((decision, index) => `EXISTS (${decision}${most !== null && index === 0 ? ' OFFSET 0' : ''})`)
    .join(' OR ')})`,
  most,
});

/** Answers questions about arrivals: every one of them is there, whatever became of it. */
@Injectable()
export class AttemptReader {
  constructor(private readonly database: Database) {}

  /** @throws Problem `validation-failed` for a cursor that belongs to another question, or to none */
  async list(tenant: string, filters: AttemptFilters, paging: Paging): Promise<Page<AttemptView>> {
    const question = ['attempts', tenant, Object.entries(filters).toSorted()];
    const from = cursorOf(question, paging);
    const walked = await this.database.transaction(tenant, async (tx) => {
      const by = (way: (parameters: Parameters) => Pick<Walk, 'sources' | 'sieve'>): Promise<Walked<AttemptRow>[]> => {
        const parameters = new Parameters(tenant);
        const conditionOf = (source: Source): string => whereOf(ATTEMPT_FILTERS, ownOf(filters), source, parameters);
        const found = { parameters, conditionOf, ...way(parameters) };
        return walk<AttemptRow>(
          tx,
          { question, isOverMovingRows: true, row: ATTEMPT_ROW, joins: OF_PAGE, ...found },
          paging,
          from,
        );
      };
      if (!asksOfDecision(filters)) return by(() => ({ sources: [EVERY] }));
      // Whatever else would seem cheaper, everything comes from an index, and in order.
      await tx.query('SET LOCAL enable_seqscan = off');
      if (await areFew(tx, tenant, filters)) return by((parameters) => ({ sources: [ofThese(filters, parameters)] }));
      const near = await by((parameters) => ({ sources: [EVERY], sieve: sieveOf(filters, parameters, NEAR) }));
      if (near.length > paging.limit) return near;
      await tx.query(`SET LOCAL work_mem = '64MB'`);
      return by((parameters) => ({ sources: [EVERY], sieve: sieveOf(filters, parameters, null) }));
    });
    const { items, nextCursor } = pageOf(walked, paging.limit);
    return { items: items.map(({ problem, ...item }) => (problem === null ? item : { ...item, problem })), nextCursor };
  }

  /** How many arrivals the filters hold for. @throws Problem `validation-failed` for too many groups */
  async count(tenant: string, filters: AttemptFilters, groupBy: readonly GroupName[]): Promise<Counted> {
    const parameters = new Parameters(tenant);
    const sources = asksOfDecision(filters) ? BY_DECISION : [groupsByDecision(groupBy) ? WITH_DECISION : EVERY];
    const sql = countSql(sources, (source) => whereOf(FILTERS, filters, source, parameters), groupBy);
    const rows = await this.database.transaction(tenant, (tx) =>
      tx.query<{ counted: Record<string, unknown> }[]>(sql, parameters.values),
    );
    return countedOf(rows, groupBy);
  }
}
