import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '#database';
import type { AnswerRow } from './answer.js';

/** The pauses between two looks: short at first, since a call is often quick, and then longer. They take no connection. */
const PAUSE_MS = { first: 20, most: 250, growth: 1.5 };

/**
 * Waits for the end of queued decisions, and gives those that have ended by their id. A batch looks for all of its
 * decisions at once. If the database cannot be asked, what was answered first still stands.
 *
 * @param queued ids; null where there is nothing to wait for
 * @param deadline on the clock of `performance.now()`
 */
export async function awaitDispatches(
  database: Database,
  tenant: string,
  queued: readonly (string | null)[],
  deadline: number,
): Promise<ReadonlyMap<string, AnswerRow>> {
  const waiting = new Set(queued.filter((id) => id !== null));
  const ended = new Map<string, AnswerRow>();
  let pauseMs = PAUSE_MS.first;
  while (waiting.size > 0) {
    const remainingMs = deadline - performance.now();
    if (remainingMs <= 0) break;
    await sleep(Math.min(pauseMs, remainingMs));
    pauseMs = Math.min(pauseMs * PAUSE_MS.growth, PAUSE_MS.most);
    const rows = await database
      .statement<AnswerRow>('SELECT * FROM dispatch_outcomes($1, $2)', [tenant, [...waiting]])
      .catch(() => []);
    for (const row of rows) {
      ended.set(row.decision_id, row);
      waiting.delete(row.decision_id);
    }
  }
  return ended;
}
