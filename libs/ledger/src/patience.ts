import { setTimeout as sleep } from 'node:timers/promises';
import { classifyFailure, failureDetail, violatedConstraint } from '#database';

/**
 * How long a statement waits for a row that another transaction holds before it gives its connection back: the first
 * time long enough for a twin that is about to commit, later only for a look. Short, so that the waiters of one slow key
 * take turns on the pool instead of occupying it.
 */
const FIRST_LOCK_TIMEOUT_MS = 50;
const LATER_LOCK_TIMEOUT_MS = 10;

/** Two transactions that stood in each other's way rarely do so again; a bound keeps a mistake from running for ever. */
const CONFLICT_TRIES = 10;

const PAUSE_MS = { least: 50, most: 150 };

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

/** A try of a transaction. */
export interface Turn {
  readonly lockTimeoutMs: number;
  /** Whether there will be no other: the answer that stands is then the answer. */
  readonly isLast: boolean;
}

/**
 * Runs a transaction until it gets through: again after a conflict, and again while somebody else holds the key. The
 * pauses between take no connection.
 *
 * @param deadline until when to wait for a holder, on `performance.now()`
 * @throws StillInFlight when the deadline has passed; whatever else `transact` throws
 */
export async function patiently<T>(deadline: number, transact: (turn: Turn) => Promise<T>): Promise<T> {
  let conflicts = 0;
  for (let lockTimeoutMs = FIRST_LOCK_TIMEOUT_MS; ; lockTimeoutMs = LATER_LOCK_TIMEOUT_MS) {
    const isLast = performance.now() >= deadline;
    try {
      return await transact({ lockTimeoutMs, isLast });
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
