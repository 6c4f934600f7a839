import { Injectable } from '@nestjs/common';
import type { Transaction } from '#database';
import { applied, refused, type DecidedEffect, type EffectHandler, type EffectOutcome } from '#effects';
import type { JsonValue } from '#key';

const DECIMAL = /^\d{1,30}(\.\d{1,10})?$/;

/**
 * An amount as exact decimal text: money is never a binary fraction on its way to `numeric`. Undefined if none is stated,
 * null if what is stated is no amount.
 */
function amountOf(value: JsonValue | undefined): string | null | undefined {
  if (value === undefined) return undefined;
  const text = typeof value === 'number' ? String(value) : value;
  return typeof text === 'string' && DECIMAL.test(text) ? text : null;
}

/**
 * `refund.create`: pays back `params.amount` for the case that the decision is about. If a decision states
 * `params.orderTotal`, the refunds of the case never exceed it: the first total that is stated holds for the case.
 */
@Injectable()
export class RefundCreateHandler implements EffectHandler {
  readonly action = 'refund.create';

  async apply(tx: Transaction, { tenant, decisionId, effectId, inputs }: DecidedEffect): Promise<EffectOutcome> {
    const { subject, params } = inputs;
    const amount = amountOf(params['amount']);
    const orderTotal = amountOf(params['orderTotal']);
    if (amount === null) return refused('amount-unreadable', 'params.amount is not a decimal amount.');
    if (orderTotal === null) return refused('order-total-unreadable', 'params.orderTotal is not a decimal amount.');
    const currency = typeof params['currency'] === 'string' ? params['currency'] : null;

    // One statement adds and compares; the row that it locks makes a second refund of the case wait for this one.
    const totals = await tx.query<{ refunded: string }[]>(
      `INSERT INTO refund_case AS c (tenant_id, subject_type, subject_id, order_total, refunded)
       SELECT $1, $2, $3, t.total, t.amount FROM (SELECT $4::numeric AS total, coalesce($5::numeric, 0) AS amount) t
        WHERE t.total IS NULL OR t.amount <= t.total
       ON CONFLICT ON CONSTRAINT refund_case_pkey DO UPDATE
         SET refunded = c.refunded + excluded.refunded, order_total = coalesce(c.order_total, excluded.order_total)
       WHERE c.refunded + excluded.refunded <= coalesce(c.order_total, excluded.order_total, 'Infinity')
       RETURNING refunded`,
      [tenant, subject.type, subject.id, orderTotal ?? null, amount ?? null],
    );
    const [total] = totals;
    if (total === undefined)
      return refused('exceeds-order-total', 'The refunds of this case would exceed the total of its order.');

    await tx.query(
      'INSERT INTO refund (tenant_id, refund_id, decision_id, subject_type, subject_id, amount, currency) VALUES ($1, $2, $3, $4, $5, $6, $7)',
      [tenant, effectId, decisionId, subject.type, subject.id, amount ?? null, currency],
    );
    return applied({ refundId: effectId, refundedTotal: total.refunded });
  }
}
