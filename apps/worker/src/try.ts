import { setTimeout as sleep } from 'node:timers/promises';
import { notSent, pauseMs, sendCall, type Breakers, type CallOutcome, type DispatchTargets } from '#effects';
import { shownKey } from '#key';
import type { Dispatches, DispatchJob, DispatchState } from '#ledger';
import { LeaseKeeper } from './lease-keeper.js';
import type { WorkerLog } from './loop.js';

/** An outcome that was seen must not be lost because the database is away for a while. */
const REPORT_TRIES = 60;
const REPORT_TRIES_WHILE_STOPPING = 3;
const REPORT_PAUSE_MS = 1_000;

/** What every try of a worker needs. */
export interface TryParts {
  readonly dispatches: Dispatches;
  readonly targets: DispatchTargets;
  readonly breakers: Breakers;
  readonly log: WorkerLog;
  /** Ends every call that is under way. */
  readonly giveUp: AbortSignal;
}

/**
 * Makes one try that was claimed: the call, under a lease that is kept meanwhile, and the report on it. Never throws.
 *
 * @returns in how many milliseconds there is to be another try; null if there is none, or not for this worker to know
 */
export async function makeTry(job: DispatchJob, parts: TryParts): Promise<number | null> {
  const startedAt = performance.now();
  const keeper = new LeaseKeeper(parts.dispatches, job);
  try {
    const { outcome, openForMs } = await callUnlessOpen(job, keeper, parts);
    const latencyMs = performance.now() - startedAt;
    const retryAfterMs = outcome.kind === 'again' ? outcome.retryAfterMs : null;
    // A host that is known to be down is not worth a try before its circuit lets one through.
    const pause = pauseMs(job.tries, Math.max(retryAfterMs ?? 0, openForMs));
    const state = await report(job, outcome, pause, startedAt, parts);
    logTry(job, outcome, { state, pause, latencyMs }, parts.log);
    return state === 'in_flight' ? pause : null;
  } catch (error) {
    parts.log.error(error);
    return null;
  } finally {
    keeper.stop();
  }
}

async function callUnlessOpen(
  job: DispatchJob,
  keeper: LeaseKeeper,
  { targets, breakers, giveUp }: TryParts,
): Promise<{ outcome: CallOutcome; openForMs: number }> {
  const openForMs = breakers.admit(job.host);
  if (openForMs !== null) return { outcome: notSent('breaker-open'), openForMs };
  const signal = AbortSignal.any([keeper.signal, giveUp]);
  const outcome = await sendCall(job.call, targets, { maySend: keeper.maySend, now: keeper.databaseTime, signal });
  breakers.report(job.host, seenOf(outcome));
  return { outcome, openForMs: 0 };
}

function seenOf(outcome: CallOutcome): 'up' | 'down' | 'nothing' {
  if (outcome.kind !== 'again') return 'up';
  if (outcome.isHostDown) return 'down';
  return outcome.status === null ? 'nothing' : 'up';
}

async function report(
  job: DispatchJob,
  outcome: CallOutcome,
  pause: number,
  startedAt: number,
  { dispatches, log, giveUp }: TryParts,
): Promise<DispatchState> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await dispatches.report(job, outcome, pause, startedAt);
    } catch (error) {
      if (tries >= (giveUp.aborted ? REPORT_TRIES_WHILE_STOPPING : REPORT_TRIES)) throw error;
      log.error(error);
      await sleep(REPORT_PAUSE_MS);
    }
  }
}

/** Where it went, how it went, and what follows; of the key no more than finds it, of the URL no more than its host. */
function logTry(
  job: DispatchJob,
  outcome: CallOutcome,
  { state, pause, latencyMs }: { state: DispatchState; pause: number; latencyMs: number },
  log: WorkerLog,
): void {
  const { requestId, tenant, decisionId, action, host, tries } = job;
  log.info({
    event: 'dispatch',
    requestId,
    tenant,
    decisionId,
    action,
    ...shownKey(job.key),
    host,
    try: tries,
    status: outcome.status,
    ...(outcome.kind === 'again' && outcome.failure !== null ? { failure: outcome.failure } : {}),
    state,
    ...(state === 'in_flight' ? { nextTryInMs: Math.round(pause) } : {}),
    latencyMs: Math.round(latencyMs * 1000) / 1000,
  });
}
