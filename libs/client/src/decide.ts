import { type Asked, claimOf, type Claim, errorOf, exhaustionOf, type Outcome, outcomeOf } from './answers.js';
import {
  type Ending,
  endingOfNothing,
  endingOfRejected,
  type ErrorsMean,
  leaseTokenOf,
  unrecordedOf,
} from './ending.js';
import {
  DuplicateSubject,
  LeaseLost,
  type LedgerError,
  OutcomeUnknown,
  Refused,
  Rejected,
  RunFailed,
  StillInFlight,
  Unavailable,
  WrongExecution,
} from './errors.js';
import type { Begun, Journal, Report } from './journal.js';
import { leaseLengthMs } from './lease-keeper.js';
import { hasLeaseNonce, keyHeader, newLeaseNonce, type Registration, withLeaseNonce } from './request.js';
import { type HeldLease, type Run, runUnderLease } from './run.js';
import { type Answer, Exhausted, type Post, type Transport } from './transport.js';

/** More leases than this are not lost one after the other before a run begins; a service that says so is not well. */
const MAX_CLAIMS = 5;

/** What a decision is carried out with. */
export interface Means {
  readonly transport: Transport;
  readonly journal: Journal;
  /** How long the service may hold a twin, in whole seconds; null leaves it to the service. */
  readonly waitSeconds: number | null;
}

export interface Conduct {
  readonly signal?: AbortSignal | undefined;
  readonly errorsMean: ErrorsMean;
}

/** How a report was taken. */
type Reported<T> = Outcome<T> | 'failed' | 'unknown';

/**
 * One decision from its key to its recorded outcome:
 *
 * 1. Keep the request's bytes, or find those of an earlier life.
 * 2. Report what an earlier life has brought about and not reported.
 * 3. Register: a recorded outcome ends it here, a lease goes on.
 * 4. Take the right to run under the lease, once for all who share the store; then have the service say that it is still held.
 * 5. Run, and renew meanwhile.
 * 6. Keep the outcome; report it; forget.
 *
 * A crash between any two steps is followed by step 1, with the same bytes. After step 4 nobody runs under that lease again:
 * the service says, when it is over, whether another is given (`onExpiredLease`).
 */
export async function carryOut<T>(
  means: Means,
  register: () => Registration,
  run: Run<T> | undefined,
  conduct: Conduct,
): Promise<Outcome<T>> {
  const { journal } = means;
  const registration = register();
  const opened = await journal.open(registration);
  for (const begun of opened.begun) {
    if (begun.report === null) continue;
    const reported = await report<T>(means, registration.id, begun, begun.report);
    if (typeof reported !== 'string') return reported;
    return carryOut(means, register, run, conduct);
  }
  // Under the lease of the kept nonce somebody has begun. Another nonce, which need not be kept, asks for the lease after it.
  const isTaken = opened.begun.length > 0;
  const needsNonce = isTaken || (run !== undefined && !hasLeaseNonce(opened.body));
  const body = needsNonce ? withLeaseNonce(opened.body, newLeaseNonce()) : opened.body;
  const settled = await claim<T>(means, { ...registration, body }, run !== undefined, conduct);
  if (!('begun' in settled)) return settled;
  const { begun, held } = settled;
  if (run === undefined) return withoutRun(means, registration.id, begun, held);
  return end(means, registration.id, begun, await runUnderLease(run, held, conduct));
}

/** Reports the outcomes that earlier lives have kept for one registration, and gives what became of each. */
export async function resumeOne(
  means: Means,
  id: string,
): Promise<{ begun: Begun; reported: Reported<unknown> | Error }[]> {
  const results: { begun: Begun; reported: Reported<unknown> | Error }[] = [];
  for (const begun of await means.journal.begun(id)) {
    if (begun.report === null) continue;
    const reported = await report(means, id, begun, begun.report).catch((error: unknown) =>
      error instanceof Error ? error : new Error(String(error)),
    );
    results.push({ begun, reported });
  }
  return results;
}

/** Registers until there is a recorded outcome, or a lease under which nobody has begun and which is held. */
async function claim<T>(
  means: Means,
  registration: Registration,
  isToRun: boolean,
  { signal }: Conduct,
): Promise<Outcome<T> | { begun: Begun; held: HeldLease }> {
  const { journal, transport } = means;
  const { id, key } = registration;
  let { body } = registration;
  for (let claims = 0; claims < MAX_CLAIMS; claims++) {
    const answer = await exchange(transport, registerPost(means, key, body), { key }, signal);
    const outcome = outcomeOf<T>(answer);
    if (outcome !== null) {
      await journal.finish(id);
      if (isToRun && !outcome.replayed) throw notRun(outcome);
      return outcome;
    }
    const given = claimOf(answer);
    if (given === null) throw await closing(journal, id, errorOf(answer, { key }));
    const begun = await journal.begin(id, given);
    const held = begun === null ? null : await confirm(means, begun, given, signal);
    if (begun !== null && held !== null) return { begun, held };
    body = withLeaseNonce(body, newLeaseNonce());
  }
  const facts = { key, decisionId: null, state: 'in_flight', problem: null } as const;
  throw new StillInFlight('Every lease that was given was lost before a run could begin.', facts);
}

/**
 * Has the service say that the lease is held: between its giving and the taking of the right to run, another process may have
 * run under it, completed and forgotten. Null if it is lost; nothing has been run then.
 */
async function confirm(means: Means, begun: Begun, given: Claim, signal?: AbortSignal): Promise<HeldLease | null> {
  const { key, decisionId, token } = given;
  const post: Post = { path: `/v1/decisions/${decisionId}/lease`, body: JSON.stringify({ leaseToken: token }) };
  const sinceMs = performance.now();
  try {
    const answer = await exchange(means.transport, post, { key, decisionId }, signal);
    if (answer.status === 200) {
      signal?.throwIfAborted();
      const lockedUntil = answer.body?.['lockedUntil'];
      return {
        claim: given,
        lockedUntil: typeof lockedUntil === 'string' ? lockedUntil : given.lockedUntil,
        lengthMs: leaseLengthMs(lockedUntil, answer.serverTimeMs),
        sinceMs,
        renew: (timeoutMs) => means.transport.send(post, timeoutMs),
      };
    }
    const error = errorOf(answer, { key, decisionId });
    if (!(error instanceof LeaseLost)) throw error;
    await means.journal.forget(begun);
    return null;
  } catch (error) {
    await means.journal.forget(begun);
    throw error;
  }
}

async function end<T>(means: Means, id: string, begun: Begun, ending: Ending): Promise<Outcome<T>> {
  await means.journal.end(begun, ending.report);
  const reported = await report<T>(means, id, begun, ending.report, ending.cause);
  if (typeof reported !== 'string') return reported;
  const { key, decisionId } = begun;
  const facts = { key, decisionId, state: reported, problem: null, cause: ending.cause };
  if (reported === 'failed') throw new RunFailed(`The run had no effect. ${why(ending.cause)}`, facts);
  throw new OutcomeUnknown(`The effect may have happened. ${why(ending.cause)}`, facts);
}

/** Posts a report until it is taken, and forgets what the service then knows. */
async function report<T>(means: Means, id: string, begun: Begun, what: Report, cause?: unknown): Promise<Reported<T>> {
  const { journal, transport } = means;
  const { key, decisionId } = begun;
  const asked: Asked = { key, decisionId, unrecorded: unrecordedOf(what), cause };
  const answer = await exchange(
    transport,
    { path: `/v1/decisions/${decisionId}/${what.route}`, body: what.body },
    asked,
  );
  const outcome = outcomeOf<T>(answer);
  if (outcome !== null) {
    await journal.finish(id);
    return outcome;
  }
  const state = answer.status === 200 ? answer.body?.['state'] : undefined;
  if (state === 'failed' || state === 'unknown') {
    await journal.forget(begun);
    await journal.close(id);
    return state;
  }
  const error = errorOf(answer, asked);
  // Too large is too large, also for a proxy; what is ill-formed, only the service knows.
  const cannotBeTaken = answer.status === 413 || (answer.status === 400 && error.problem !== null);
  if (what.route === 'completion' && cannotBeTaken) {
    return end(means, id, begun, endingOfRejected(leaseTokenOf(what), what, error));
  }
  if (!isKept(error)) await journal.forget(begun);
  throw await closing(journal, id, error);
}

/** Gives the lease back, since nothing was run under it. */
async function withoutRun(means: Means, id: string, begun: Begun, { claim: given }: HeldLease): Promise<never> {
  const ending = endingOfNothing(given.token, 'The caller gave nothing to run.');
  await means.journal.end(begun, ending.report);
  await report(means, id, begun, ending.report);
  throw new WrongExecution('The action is executed by the caller, and decide was given no run. Nothing was done.', {
    key: given.key,
    decisionId: given.decisionId,
    state: 'failed',
    problem: null,
  });
}

function notRun({ key, decisionId }: Outcome): WrongExecution {
  const facts = { key, decisionId, state: 'completed', problem: null } as const;
  return new WrongExecution(
    'The service executes the action itself. The outcome is recorded; run was not called.',
    facts,
  );
}

function registerPost({ waitSeconds }: Means, key: string, body: string): Post {
  const headers = { 'idempotency-key': keyHeader(key) };
  if (waitSeconds === null) return { path: '/v1/decisions', body, headers };
  const waiting = { ...headers, prefer: `wait=${waitSeconds}` };
  return { path: '/v1/decisions', body, headers: waiting, heldMs: waitSeconds * 1000 };
}

async function exchange(transport: Transport, post: Post, asked: Asked, signal?: AbortSignal): Promise<Answer> {
  try {
    return await transport.exchange(post, signal);
  } catch (error) {
    throw error instanceof Exhausted ? exhaustionOf(error, asked) : error;
  }
}

/** Forgets what an error has made pointless to keep, and gives the error back. */
async function closing(journal: Journal, id: string, error: LedgerError): Promise<LedgerError> {
  if (error instanceof Refused || error instanceof DuplicateSubject) await journal.finish(id);
  else if (!isKept(error)) await journal.close(id);
  return error;
}

/**
 * With another token the same bytes may be taken, and where another tenant's token finds nothing too. What did not come from
 * the service, as a proxy's page, says nothing about what the service would say.
 */
function isKept(error: unknown): boolean {
  return error instanceof Rejected && (error.problem === null || [401, 403, 404].includes(error.status));
}

/** Whether what was to be said is kept, and may be taken another time. */
export function isComingBack(error: unknown): boolean {
  return error instanceof Unavailable || error instanceof StillInFlight || isKept(error);
}

function why(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
