import { setTimeout as sleep } from 'node:timers/promises';
import { classifyFailure, failureDetail, violatedConstraint } from '#database';

/**
 * How long a statement may wait for a row that another transaction holds before it gives its connection back. Short, so
 * that the waiters of one slow key take turns on the pool instead of occupying it; a twin that takes no longer than this
 * is waited for without a detour.
 */
export const LOCK_TIMEOUT_MS = 100;

/** Two transactions that stood in each other's way rarely do so again; a bound keeps a mistake from running for ever. */
const CONFLICT_TRIES = 10;

const PAUSE_MS = { least: 25, most: 75 };

/**
 * A key whose record was pruned between the look at the ledger and the claim is stopped by the ledger's own constraint.
 * The next transaction finds its entry.
 */
const IDENTITY = new Set(['ledger_entry_key_once', 'bound_key_pkey']);

/** How long a request is ready to wait, in milliseconds. */
export interface Patience {
  /** For whoever holds what it needs. */
  readonly twinMs: number;
  /** For its own effect, where the worker brings it about. */
  readonly outcomeMs: number;
}

/** Whoever holds the key has not finished in the time that the caller wanted to wait. */
export class StillInFlight extends Error {
  /** @param holder the decision that is waited for, where that is known */
  constructor(readonly holder: string | null) {
    super('still in flight');
  }
}

/** Another holds what the request needs, for longer than a transaction: there is something to wait for. */
export class HeldByAnother extends Error {}

/**
 * Runs a transaction until it gets through: again after a conflict, and again while somebody else holds the key. The
 * pauses between take no connection.
 *
 * @param transact is told whether it is the last try: then it gives the answer that stands, whatever it is
 * @throws StillInFlight when `waitMs` has passed since the call; whatever else `transact` throws
 */
export async function patiently<T>(waitMs: number, transact: (isLast: boolean) => Promise<T>): Promise<T> {
  const deadline = performance.now() + waitMs;
  let conflicts = 0;
  for (;;) {
    const isLast = performance.now() >= deadline;
    try {
      return await transact(isLast);
    } catch (error) {
      if (isConflict(error)) {
        conflicts += 1;
        if (conflicts === CONFLICT_TRIES) throw error;
      } else if (classifyFailure(error) === 'lock-timeout') {
        if (isLast) throw new StillInFlight(failureDetail(error));
      } else if (!(error instanceof HeldByAnother)) {
        throw error;
      }
    }
    await sleep(PAUSE_MS.least + Math.random() * (PAUSE_MS.most - PAUSE_MS.least));
  }
}

function isConflict(error: unknown): boolean {
  return classifyFailure(error) === 'conflict' || IDENTITY.has(violatedConstraint(error) ?? '');
}
