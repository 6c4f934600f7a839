import type { Transaction } from '#database';
import type { EffectHandler } from '#effects';
import type { AnswerRow } from './answer.js';
import type { Arrival, DecisionRequest } from './decision-request.js';
import { decidedEffect, outcomeRow, type DecisionRow } from './decision-row.js';
import { runHandler } from './handler-run.js';

/** The transaction around a handler: the key is claimed, the effect applied or refused, the outcome recorded. */
export async function recordAround(
  tx: Transaction,
  parameters: readonly unknown[],
  handler: EffectHandler,
  row: DecisionRow,
  request: DecisionRequest,
  arrival: Arrival,
): Promise<AnswerRow[]> {
  const standing = await tx.query<AnswerRow[]>('SELECT * FROM open_decision($1, $2, $3)', [...parameters]);
  if (standing.length > 0) return standing;
  const { tenant } = arrival.caller;
  const outcome = await runHandler(tx, handler, decidedEffect(tenant, row, request), row);
  const concluded = outcome === 'place-taken' ? row : outcomeRow(row, request, outcome, arrival.requestId);
  const isApplied = outcome !== 'place-taken' && outcome.status === 'applied';
  return tx.query<AnswerRow[]>('SELECT * FROM close_decision($1, $2, $3)', [
    tenant,
    JSON.stringify([concluded]),
    isApplied,
  ]);
}
