import { sleep } from './retry.js';
import type { Answer } from './transport.js';

/** Contract bounds of a lease. */
const SHORTEST_LEASE_MS = 1_000;
const LONGEST_LEASE_MS = 3_600_000;

/** Without a `Date` header nothing says how long a lease is; then it is renewed every second. */
const ASSUMED_LEASE_MS = 3_000;

/** `Date` has whole seconds, cut off: the server's clock may have been so much further on. */
const DATE_RESOLUTION_MS = 1_000;

/** How long the end of a run waits for a renewal that is under way, so that it does not arrive after the completion. */
const LAST_RENEWAL_MS = 1_000;

/** What a renewal is made of. */
export interface Renewal {
  /** Sends one renewal. It is let end even after {@link LeaseKeeper.stop}: an aborted one may arrive all the same. */
  renew(timeoutMs: number): Promise<Answer>;
  /** Called once, when the lease is not held any more: told so by the service, or its time is over unrenewed. */
  onLost(why: string): void;
}

export interface LeaseKeeper {
  /** Ends the renewals. */
  stop(): Promise<void>;
}

/**
 * How long a lease lasts from the answer that gave it, in milliseconds, never more than it does.
 *
 * Two times of the server's are compared with one another, never with this machine's clock. They tell when to renew and
 * nothing else: whether the lease is held, only the service decides.
 */
export function leaseLengthMs(lockedUntil: unknown, serverTimeMs: number | null): number {
  const end = typeof lockedUntil === 'string' ? Date.parse(lockedUntil) : Number.NaN;
  if (serverTimeMs === null || Number.isNaN(end)) return ASSUMED_LEASE_MS;
  return Math.min(LONGEST_LEASE_MS, Math.max(SHORTEST_LEASE_MS, end - serverTimeMs - DATE_RESOLUTION_MS));
}

/**
 * Renews a lease at a third of its time, until it is stopped. A renewal that fails is tried again until the lease's time is
 * over; only `lease-lost` is final before that.
 *
 * @param lengthMs of {@link leaseLengthMs}
 * @param sinceMs by `performance.now()`: when the request was sent that gave the lease
 */
export function keepLease(renewal: Renewal, lengthMs: number, sinceMs: number): LeaseKeeper {
  const stopped = new AbortController();
  const kept = renewUntilStopped(renewal, { lengthMs, sinceMs }, stopped.signal);
  return {
    async stop() {
      stopped.abort();
      const patience = new AbortController();
      await Promise.race([kept, waits(LAST_RENEWAL_MS, patience.signal)]);
      patience.abort();
    },
  };
}

async function renewUntilStopped(
  renewal: Renewal,
  first: { lengthMs: number; sinceMs: number },
  stopped: AbortSignal,
): Promise<void> {
  let { lengthMs, sinceMs } = first;
  let pauseMs = lengthMs / 3;
  while (await waits(pauseMs, stopped)) {
    const sentMs = performance.now();
    const answer = await renewal.renew(lengthMs / 3).catch(() => null);
    if (answer?.status === 200) {
      lengthMs = leaseLengthMs(answer.body?.['lockedUntil'], answer.serverTimeMs);
      sinceMs = sentMs;
      pauseMs = lengthMs / 3;
      continue;
    }
    if (stopped.aborted) return;
    if (answer?.body?.['code'] === 'lease-lost') return renewal.onLost('The service says that the lease is lost.');
    if (performance.now() - sinceMs >= lengthMs) return renewal.onLost('The lease ran out before it could be renewed.');
    pauseMs = Math.min(Math.random() * (lengthMs / 6), Math.max(0, sinceMs + lengthMs - performance.now()));
  }
}

/** Whether the whole time passed; false as soon as the signal aborts. */
async function waits(ms: number, stopped: AbortSignal): Promise<boolean> {
  try {
    await sleep(ms, stopped);
    return true;
  } catch {
    return false;
  }
}
