import { Injectable } from '@nestjs/common';
import { Database } from '#database';
import { BY_DECISION, EVERY, WITH_DECISION } from './attempt-source.js';
import {
  areAway,
  conditionsOf,
  fewAttempts,
  fewDecisions,
  gather,
  lookThrough,
  NEAR,
  type Way,
} from './attempt-ways.js';
import { asksOfDecision, ATTEMPT_FILTERS, DECISION_FILTERS, whereOf, type AttemptFilters } from './filters.js';
import { countedOf, countSql, groupsByDecision, type Counted, type GroupName } from './groups.js';
import { Parameters } from './parameters.js';
import { lookForFew, lookForMany } from './settings.js';
import { cursorOf, pageOf, walk, type Page, type Paging, type Walked } from './walk.js';

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
      if (await fewDecisions(tx, tenant, filters)) return by(gather(filters));
      if (await fewAttempts(tx, tenant, filters)) return by(lookThrough(filters, { isNear: true }));
      const away = (await areAway(tx, tenant, filters, paging.order)) ? { towards: paging.order } : {};
      const near = await by(lookThrough(filters, { isNear: true, most: NEAR, ...away }));
      if (near.length > paging.limit) return near;
      await lookForMany(tx);
      return by(lookThrough(filters, away));
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
