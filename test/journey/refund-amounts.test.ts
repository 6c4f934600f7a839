import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { EXAMPLE_ACTIONS } from '../../examples/index.js';
import { inputs } from '../support/index.js';
import { setStage, type Stage } from '../support/stage.js';

let stage: Stage;

beforeAll(async () => {
  stage = await setStage({ actions: EXAMPLE_ACTIONS });
});

afterAll(async () => {
  await stage?.clear();
});

const refund = (params: Record<string, unknown>) =>
  stage.orchestrator.decide({
    inputs: inputs({ action: 'refund.create', subject: { type: 'case', id: randomUUID() }, params }),
  });

describe('an amount that is stated is never taken for none', () => {
  test.each(['9'.repeat(31), `1.${'0'.repeat(10)}1`, 1e-7, `${'0'.repeat(31)}5`])(
    'amount %s against a total of 1: refused or turned away, or recorded as it stands',
    async (amount) => {
      const { status, body } = await refund({ amount, currency: 'EUR', orderTotal: '1' });
      const rows = await stage.database.query<{ amount: string | null }>(
        'SELECT amount FROM refund WHERE decision_id = $1',
        [body.decisionId ?? randomUUID()],
      );

      if (status === 201) expect(rows.map((row) => Number(row.amount))).toEqual([Number(amount)]);
      else expect([400, 409]).toContain(status);
    },
  );

  test.each(['abc', '1e3', -5, '-5', true, ['100'], '1,000'])(
    'a total of %j is not taken for no total',
    async (orderTotal) => {
      const { status } = await refund({ amount: '1000000', currency: 'EUR', orderTotal });

      expect([400, 409]).toContain(status);
    },
  );
});
