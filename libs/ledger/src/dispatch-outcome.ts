import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '#database';
import type { Answer, AnswerRow } from './answer.js';
import type { DecisionRow } from './decision-row.js';

/** The pauses between two looks: short at first, since a call is often quick, and then longer. They take no connection. */
const PAUSE_MS = { first: 20, most: 250, growth: 1.5 };

/**
 * Waits for the end of a queued decision. Null: it has not ended in time.
 *
 * @param queued the answer with which it was queued
 * @param deadline on the clock of `performance.now()`
 */
export async function awaitDispatch(
  database: Database,
  tenant: string,
  { ordinal }: DecisionRow,
  queued: Answer,
  deadline: number,
): Promise<AnswerRow | null> {
  let pauseMs = PAUSE_MS.first;
  for (;;) {
    const remainingMs = deadline - performance.now();
    if (remainingMs <= 0) return null;
    await sleep(Math.min(pauseMs, remainingMs));
    pauseMs = Math.min(pauseMs * PAUSE_MS.growth, PAUSE_MS.most);
    const [row] = await database.statement<AnswerRow>('SELECT * FROM dispatch_outcome($1, $2)', [
      tenant,
      queued.decisionId,
    ]);
    if (row === undefined) return null;
    if (row.state !== 'in_flight') return { ...row, ordinal: Number(ordinal) };
  }
}
