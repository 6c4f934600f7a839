import type { Claim, DownstreamKeys } from './answers.js';
import type { Ending, ErrorsMean } from './ending.js';
import { endingOfError, endingOfValue } from './ending.js';
import { LeaseLost } from './errors.js';
import { keepLease } from './lease-keeper.js';
import type { Answer } from './transport.js';
import type { Applied } from './verdict.js';

/** What `run` is given. */
export interface RunContext {
  /** The decision's key. */
  readonly key: string;
  readonly decisionId: string;
  /** Send one of them to the provider as its idempotency key. They are the same whenever the decision is run. */
  readonly downstreamKeys: DownstreamKeys;
  readonly lease: {
    /** The fencing number: a system that remembers the highest it has seen can turn away who has lost the lease. */
    readonly number: number;
    /** RFC 3339, by the database's clock, when `run` began; it moves on while `run` works. */
    readonly lockedUntil: string;
  };
  /**
   * Aborts when the lease is lost (the reason is a `LeaseLost`) or the caller's own signal does. Hand it on to `fetch`, and
   * begin nothing after it.
   */
  readonly signal: AbortSignal;
}

/** Makes the effect happen. What it returns is recorded as the result; what it may throw: `NoEffect`, `Refusal`. */
export type Run<T> = (context: RunContext) => T | Applied<T> | Promise<T | Applied<T>>;

/** A lease that is surely held at this moment. */
export interface HeldLease {
  readonly claim: Claim;
  readonly lockedUntil: string;
  readonly lengthMs: number;
  /** By `performance.now()`: when the request was sent that gave `lengthMs`. */
  readonly sinceMs: number;
  renew(timeoutMs: number): Promise<Answer>;
}

/** Runs under a lease and renews it meanwhile. Never throws: every way in which `run` can end is an ending. */
export async function runUnderLease<T>(
  run: Run<T>,
  held: HeldLease,
  options: { readonly signal?: AbortSignal | undefined; readonly errorsMean: ErrorsMean },
): Promise<Ending> {
  const { claim, lockedUntil } = held;
  const { key, decisionId, downstreamKeys, token, number } = claim;
  const abort = new AbortController();
  const passOn = (): void => abort.abort(options.signal?.reason);
  const onLost = (why: string): void =>
    abort.abort(new LeaseLost(why, { key, decisionId, state: null, problem: null, unrecorded: null }));
  options.signal?.addEventListener('abort', passOn, { once: true });
  const keeper = keepLease({ renew: (timeoutMs) => held.renew(timeoutMs), onLost }, held.lengthMs, held.sinceMs);
  try {
    const lease = { number, lockedUntil };
    const value = await run({ key, decisionId, downstreamKeys, lease, signal: abort.signal });
    return endingOfValue(token, value);
  } catch (error) {
    return endingOfError(token, error, options.errorsMean);
  } finally {
    options.signal?.removeEventListener('abort', passOn);
    await keeper.stop();
  }
}
