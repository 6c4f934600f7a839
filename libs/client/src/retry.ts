import { setTimeout as delay } from 'node:timers/promises';

/** How long, and how often, one exchange with the service is tried. */
export interface RetryPolicy {
  /** Tries in all, the first included: 1–10. */
  readonly tries: number;
  /** From the first try to the last answer, waiting included. The time in which `run` works is not part of it. */
  readonly budgetMs: number;
  /** One try, from connecting to the last byte of the answer. */
  readonly timeoutMs: number;
  /** The upper bound of the first pause; it doubles with each try. */
  readonly baseMs: number;
  /** No pause is longer, unless the service asks for it by `Retry-After`. */
  readonly capMs: number;
}

export const DEFAULT_RETRY: RetryPolicy = { tries: 5, budgetMs: 30_000, timeoutMs: 10_000, baseMs: 200, capMs: 5_000 };

const MAX_TRIES = 10;

/** @throws RangeError naming the setting that cannot be used */
export function retryPolicy(changes: Partial<RetryPolicy> = {}): RetryPolicy {
  const policy = { ...DEFAULT_RETRY, ...changes };
  if (!Number.isInteger(policy.tries) || policy.tries < 1 || policy.tries > MAX_TRIES) {
    throw new RangeError(`retry.tries is a whole number from 1 to ${MAX_TRIES}.`);
  }
  for (const name of ['budgetMs', 'timeoutMs', 'baseMs', 'capMs'] as const) {
    if (!Number.isFinite(policy[name]) || policy[name] < 0) throw new RangeError(`retry.${name} is milliseconds.`);
  }
  return policy;
}

/**
 * The pause after a failed try, in milliseconds: full jitter, anything between nothing and the bound, so that clients which
 * failed together do not come back together. What the service asked for comes on top of nothing and before the jitter.
 *
 * @param tried tries so far, at least 1
 * @param retryAfterMs what `Retry-After` asked for; 0 if nothing
 * @param random in [0, 1)
 */
export function pauseMs(policy: RetryPolicy, tried: number, retryAfterMs: number, random = Math.random()): number {
  return retryAfterMs + random * Math.min(policy.capMs, policy.baseMs * 2 ** (tried - 1));
}

/** @throws the signal's reason, if it aborts */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  try {
    await delay(ms, undefined, signal === undefined ? {} : { signal });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}
