import { setTimeout as sleep } from 'node:timers/promises';
import { Abandoned, type Transaction } from '#database';
import type { DecidedEffect, EffectHandler, EffectOutcome } from '#effects';
import type { DecisionRow } from './decision-row.js';

/** A handler holds its key, its subject and a connection; one that takes longer has lost its way. */
const HANDLER_TIMEOUT_MS = 10_000;

const REASON_LENGTH = 255;

/** Thrown through a savepoint so that a refused handler's writes are undone, and caught right behind it. */
class Refusal extends Error {
  constructor(readonly outcome: EffectOutcome | 'place-taken') {
    super('refused');
  }
}

/**
 * Applies an effect in a savepoint: its row, then whatever its handler writes. The row comes first, so a rival for the
 * subject waits before its handler runs, not after. A refusal undoes both and leaves the decision.
 */
export async function runHandler(
  tx: Transaction,
  handler: EffectHandler,
  effect: DecidedEffect,
  row: DecisionRow,
): Promise<EffectOutcome | 'place-taken'> {
  try {
    return await tx.transaction(async (savepoint) => {
      const [placed] = await savepoint.query<{ applied: number }[]>(
        'SELECT cardinality(apply_effects($1, decision_rows($2), ARRAY[$3::uuid], clock_timestamp())) AS applied',
        [effect.tenant, JSON.stringify([row]), effect.decisionId],
      );
      if (placed?.applied !== 1) throw new Refusal('place-taken');
      const outcome = await inTime(handler, handler.apply(savepoint, effect));
      if (outcome.status === 'refused') throw new Refusal(checkedRefusal(handler, outcome));
      return outcome;
    });
  } catch (error) {
    if (error instanceof Refusal) return error.outcome;
    throw error;
  }
}

async function inTime(handler: EffectHandler, applying: Promise<EffectOutcome>): Promise<EffectOutcome> {
  const stop = new AbortController();
  const late = sleep(HANDLER_TIMEOUT_MS, undefined, { signal: stop.signal }).then(() => {
    throw new Abandoned(`The handler of ${handler.action} did not finish within ${HANDLER_TIMEOUT_MS} ms`);
  });
  try {
    return await Promise.race([applying, late]);
  } finally {
    stop.abort();
    late.catch(() => undefined);
  }
}

function checkedRefusal(handler: EffectHandler, outcome: EffectOutcome & { status: 'refused' }): EffectOutcome {
  const { reason, detail } = outcome;
  if (reason === '' || reason.length > REASON_LENGTH || detail === '') {
    throw new Error(
      `The handler of ${handler.action} refused without a reason of 1 to ${REASON_LENGTH} characters and a detail`,
    );
  }
  return outcome;
}
