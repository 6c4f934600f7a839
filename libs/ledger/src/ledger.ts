import { Inject, Injectable, Logger } from '@nestjs/common';
import { Inventory, type Action } from '#actions';
import { classifyFailure, Database, failureProblem } from '#database';
import { EffectHandlers } from '#effects';
import { Problem } from '#problem';
import {
  inFlightAnswer,
  LEASE_TIME,
  mismatchAnswer,
  outcomeAnswer,
  sameContentAnswer,
  unknownAnswer,
  type Answer,
  type AnswerRow,
} from './answer.js';
import { Backlog } from './backlog.js';
import type { Arrival, DecisionRequest } from './decision-request.js';
import { recordAround } from './record-around.js';
import { LEDGER_SETTINGS, type LedgerSettings } from './ledger-settings.js';
import { awaitDispatches } from './dispatch-outcome.js';
import { Gatherer } from './gatherer.js';
import { claimedAnswer } from './lease.js';
import { HeldByAnother, patiently, StillInFlight, type Patience, type Turn } from './patience.js';
import { consecutive, planRequest, type Plan } from './plan.js';
import { appliedBodyFromEntry } from './stored-outcome.js';

const CLAIMED = 202;

/** How many statements of one tenant may be under way for single requests; what arrives meanwhile goes into the next. */
const UNDER_WAY = 3;
/** How many of them a statement may carry. */
const MOST_TOGETHER = 64;
/**
 * One that has to wait for a twin must not hold up its neighbours: they part, and each goes on alone. Long enough for the waits of
 * statements that only stand in each other's way, as while a table grows: parting for these would cost more than they do.
 */
const COMPANY_LOCK_TIMEOUT_MS = 50;

interface Gathered {
  readonly arrival: Arrival;
  readonly plan: Plan;
}

/** The promise: one decision, recorded once. Every request for a key ends in the one outcome that was recorded. */
@Injectable()
export class Ledger {
  private readonly logger = new Logger(Ledger.name);
  private readonly backlog: Backlog;
  private readonly gatherers = new Map<string, Gatherer<Gathered, Answer | Problem | 'alone'>>();

  constructor(
    private readonly database: Database,
    private readonly inventory: Inventory,
    private readonly handlers: EffectHandlers,
    @Inject(LEDGER_SETTINGS) private readonly settings: LedgerSettings,
  ) {
    this.backlog = new Backlog(settings.maxQueuedDecisions);
  }

  /**
   * Records a decision with its effect, or finds what was recorded.
   *
   * @param patience how long it waits for whoever holds the key, and for the worker to bring its own effect about
   * @throws Problem `unknown-action`, `validation-failed`, `unavailable`: nothing was recorded
   */
  async record(arrival: Arrival, request: DecisionRequest, patience: Patience): Promise<Answer> {
    const [answer] = await this.recordAll(arrival, [request], patience);
    if (answer instanceof Problem) throw answer;
    if (answer === undefined) throw new Error('A request was left without an answer');
    return answer;
  }

  /** Records a batch in its order. Each request ends as it would have ended alone; none fails for its neighbour. */
  async recordAll(
    arrival: Arrival,
    requests: readonly DecisionRequest[],
    { twinMs, outcomeMs }: Patience,
  ): Promise<(Answer | Problem)[]> {
    const deadline = performance.now() + outcomeMs;
    const actions = await this.inventory.all(arrival.caller.tenant);
    const plans = requests.map((request, ordinal) => this.plan(arrival, request, ordinal, actions));
    const answers = await this.backlog.during(arrival.caller.tenant, plans.length, () =>
      this.runAll(arrival, plans, performance.now() + twinMs),
    );
    return this.listenOn(arrival, plans, answers, deadline);
  }

  private async runAll(arrival: Arrival, plans: readonly Plan[], deadline: number): Promise<(Answer | Problem)[]> {
    const answers: (Answer | Problem)[] = [];
    for (const run of consecutive(plans)) answers.push(...(await this.runInCompany(arrival, run, deadline)));
    return answers;
  }

  /** A single declarative decision shares a statement with those of its tenant that arrive meanwhile. */
  private async runInCompany(arrival: Arrival, run: readonly Plan[], deadline: number): Promise<(Answer | Problem)[]> {
    const [plan] = run;
    if (plan?.kind !== 'declarative' || run.length > 1) return this.runTogether(arrival, run, deadline);
    const { tenant } = arrival.caller;
    const gatherer =
      this.gatherers.get(tenant) ?? new Gatherer(UNDER_WAY, MOST_TOGETHER, (items) => this.runGathered(items));
    this.gatherers.set(tenant, gatherer);
    const answer = await gatherer.add({ arrival, plan });
    if (gatherer.isIdle()) this.gatherers.delete(tenant);
    return answer === 'alone' ? this.runTogether(arrival, run, deadline) : [answer];
  }

  /**
   * Records what has gathered in one statement. If that fails, each goes on alone and outside the lanes: nobody fails for a
   * neighbour, and nobody waits for one that has to wait for a twin.
   */
  private async runGathered(items: readonly Gathered[]): Promise<(Answer | Problem | 'alone')[]> {
    const [first] = items;
    if (first === undefined) return [];
    try {
      const rows = items.map(({ plan, arrival }, ordinal) => ({
        ...plan.row,
        ordinal,
        elapsed_ms: performance.now() - arrival.startedAt,
      }));
      const parameters = [first.arrival.caller.tenant, COMPANY_LOCK_TIMEOUT_MS, JSON.stringify(rows)];
      const answers = await this.database.statement<AnswerRow>(
        'SELECT * FROM record_decisions($1, $2, $3)',
        parameters,
      );
      const byOrdinal = new Map(answers.map((answer) => [answer.ordinal, answer]));
      return await Promise.all(
        items.map(({ arrival, plan }, ordinal) => {
          const row = byOrdinal.get(ordinal);
          return this.answer(arrival, plan, row === undefined ? [] : [inPlace(row, plan)]);
        }),
      );
    } catch (error) {
      return items.map(() => (classifyFailure(error) === 'unavailable' ? this.failed(error) : 'alone'));
    }
  }

  /** Whoever queued a decision, and has the time, is told how it ended. */
  private async listenOn(
    arrival: Arrival,
    plans: readonly Plan[],
    answers: readonly (Answer | Problem)[],
    deadline: number,
  ): Promise<(Answer | Problem)[]> {
    const queued = answers.map((answer, index) =>
      plans[index]?.kind === 'dispatch' && !(answer instanceof Problem) && answer.status === CLAIMED
        ? answer.decisionId
        : null,
    );
    const ended = await awaitDispatches(this.database, arrival.caller.tenant, queued, deadline);
    return Promise.all(
      answers.map(async (answer, index) => {
        const row = ended.get(queued[index] ?? '');
        const plan = plans[index];
        return row === undefined || plan === undefined ? answer : this.answer(arrival, plan, [inPlace(row, plan)]);
      }),
    );
  }

  /** Sends plans of one kind in one transaction; if that fails, each in its own, so that nobody fails for a neighbour. */
  private async runTogether(arrival: Arrival, plans: readonly Plan[], deadline: number): Promise<(Answer | Problem)[]> {
    try {
      const rows = await patiently(deadline, (turn) => this.transact(arrival, plans, turn));
      return await Promise.all(plans.map((plan) => this.answer(arrival, plan, rows)));
    } catch (error) {
      const [plan] = plans;
      if (error instanceof StillInFlight && plan !== undefined && plans.length === 1)
        return [await this.toldToWait(arrival, plan, error.holder)];
      // A neighbour is not to blame for a server that is gone, and trying each alone would only take longer.
      if (plans.length === 1 || classifyFailure(error) === 'unavailable') return plans.map(() => this.failed(error));
    }
    const answers: (Answer | Problem)[] = [];
    for (const plan of plans) answers.push(...(await this.runTogether(arrival, [plan], deadline)));
    return answers;
  }

  private async transact(arrival: Arrival, plans: readonly Plan[], turn: Turn): Promise<AnswerRow[]> {
    const [first] = plans;
    const { tenant } = arrival.caller;
    const parameters = [tenant, turn.lockTimeoutMs, JSON.stringify(plans.map(({ row }) => row))];
    switch (first?.kind) {
      case 'declarative':
        return this.database.statement('SELECT * FROM record_decisions($1, $2, $3)', parameters);
      case 'handler':
        return this.database.bare((tx) =>
          recordAround(tx, parameters, first.handler, first.row, first.request, arrival),
        );
      case 'lease':
      case 'dispatch':
        return this.claim(arrival, first, turn);
      case 'known-only':
        return this.database.statement('SELECT * FROM answer_known($1, $2, $3)', parameters);
      default:
        return [];
    }
  }

  private async answer(arrival: Arrival, plan: Plan, rows: readonly AnswerRow[]): Promise<Answer | Problem> {
    const row = rows.find(({ ordinal }) => ordinal === plan.row['ordinal']);
    if (row === undefined)
      return plan.kind === 'known-only' ? plan.problem : new Problem('internal', 'The request was not answered.');
    if (row.disposition === 'mismatch') return mismatchAnswer(row, arrival.requestId);
    if (row.disposition === 'in_flight')
      return inFlightAnswer(row.decision_id, row.state, row.retry_after_seconds, arrival.requestId);
    if (row.disposition === 'unknown') return unknownAnswer(row, arrival.requestId);
    if ((plan.kind === 'lease' || plan.kind === 'dispatch') && row.response_status === CLAIMED)
      return claimedAnswer(row, plan.request, arrival.caller.tenant, plan.kind === 'lease' ? plan.secret : null);
    if (row.problem === 'same-content') return sameContentAnswer(row, arrival.requestId);
    return outcomeAnswer(
      row,
      row.response_body ?? (await appliedBodyFromEntry(this.database, arrival.caller.tenant, row.decision_id)),
    );
  }

  /** Claims the key for its caller or for the worker, or tells who holds it; the row must be asked for again while `isLast` is false. */
  private async claim(
    { caller }: Arrival,
    plan: Plan & { kind: 'lease' | 'dispatch' },
    { lockTimeoutMs, isLast }: Turn,
  ): Promise<AnswerRow[]> {
    const { row, action } = plan;
    const [secretSha256, nonceSha256, host] =
      plan.kind === 'lease' ? [plan.secret.secretSha256, plan.secret.nonceSha256, null] : [null, null, plan.host];
    const answers = await this.database.statement<AnswerRow>(
      `SELECT *, ${LEASE_TIME} FROM open_lease($1, $2, $3, ROW($4, $5, $6, $7, $8)::lease_terms, $9)`,
      [
        caller.tenant,
        lockTimeoutMs,
        JSON.stringify([row]),
        action.leaseSeconds,
        action.onExpiredLease ?? 'reclaim',
        secretSha256,
        nonceSha256,
        host,
        isLast,
      ],
    );
    if (!isLast && answers[0]?.disposition === 'in_flight') throw new HeldByAnother();
    return answers.map((answer) => inPlace(answer, plan));
  }

  /** A twin whose wait was too short is told what is known, or else to come back, and its arrival is on record. */
  private async toldToWait(arrival: Arrival, plan: Plan, holder: string | null): Promise<Answer | Problem> {
    const parameters = [arrival.caller.tenant, JSON.stringify([plan.row]), holder];
    try {
      const rows = await patiently(performance.now(), () =>
        this.database.statement<AnswerRow>('SELECT * FROM tell_to_wait($1, $2, $3)', parameters),
      );
      const [row] = rows;
      return row === undefined
        ? inFlightAnswer(holder, 'in_flight', null, arrival.requestId)
        : await this.answer(arrival, plan, [inPlace(row, plan)]);
    } catch (error) {
      return this.failed(error);
    }
  }

  /** Nothing was recorded: the transaction is gone, and the same request may be sent again. */
  private failed(error: unknown): Problem {
    const problem = failureProblem(error);
    if (problem.code === 'internal') this.logger.error(error);
    return problem;
  }

  private plan(
    arrival: Arrival,
    request: DecisionRequest,
    ordinal: number,
    actions: ReadonlyMap<string, Action>,
  ): Plan {
    const action = actions.get(request.inputs.action) ?? null;
    const handler = this.handlers.of(request.inputs.action);
    const badParams =
      action === null ? null : this.inventory.checkParams(arrival.caller.tenant, action, request.inputs.params);
    return planRequest({
      arrival,
      request,
      ordinal,
      action,
      handler,
      badParams,
      retentionSeconds: this.settings.responseRetentionOverrideSeconds,
    });
  }
}

/** How a lease stands is told without the request's place in its batch. */
function inPlace(answer: AnswerRow, { row }: Plan): AnswerRow {
  return { ...answer, ordinal: Number(row['ordinal']) };
}
