import { Injectable } from '@nestjs/common';
import { Database } from '#database';
import { asksOfDecision, ATTEMPT_FILTERS, DECISION_FILTERS, whereOf, type AttemptFilters } from './filters.js';
import { countedOf, countSql, groupsByDecision, type Counted, type GroupName } from './groups.js';
import { Parameters } from './parameters.js';
import { DECISIONS, type Source } from './source.js';
import { cursorOf, pageOf, walk, type Page, type Paging } from './walk.js';

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
      LEFT JOIN recorded_decision f ON f.decision_id = a.decision_id AND f.tenant_id = a.tenant_id
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

/** Answers questions about arrivals: every one of them is there, whatever became of it. */
@Injectable()
export class AttemptReader {
  constructor(private readonly database: Database) {}

  /** @throws Problem `validation-failed` for a cursor that belongs to another question, or to none */
  async list(tenant: string, filters: AttemptFilters, paging: Paging): Promise<Page<AttemptView>> {
    const question = ['attempts', tenant, Object.entries(filters).toSorted()];
    const from = cursorOf(question, paging);
    const parameters = new Parameters(tenant);
    const walked = await this.database.transaction(tenant, (tx) =>
      walk<Omit<AttemptView, 'problem'> & { problem: string | null }>(
        tx,
        {
          question,
          parameters,
          sources: asksOfDecision(filters) ? BY_DECISION : [EVERY],
          isOverMovingRows: true,
          conditionOf: (source) => whereOf(FILTERS, filters, source, parameters),
          row: ATTEMPT_ROW,
          joins: 'JOIN attempt a ON a.attempt_id = p.id AND a.tenant_id = $1',
        },
        paging,
        from,
      ),
    );
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
