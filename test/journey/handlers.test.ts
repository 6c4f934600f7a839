import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { inputs, type Reply } from '../support/index.js';
import { setStage, TRANSACTIONAL, type Stage } from '../support/stage.js';

const ACTIONS = {
  'refund.create': TRANSACTIONAL,
  'sar.file': { ...TRANSACTIONAL, uniqueness: 'subject-and-period' },
};

let stage: Stage;
beforeAll(async () => {
  stage = await setStage({ actions: ACTIONS });
});
afterAll(() => stage?.clear());

let references = 0;
/** Another refund of a case; each has a business reference, so equal amounts are different decisions. */
function refund(id: string, amount: unknown, params: Record<string, unknown> = {}, key?: string): Promise<Reply> {
  references += 1;
  const asked = inputs({
    action: 'refund.create',
    subject: { type: 'case', id },
    params: { amount, currency: 'EUR', reference: `ref-${references}`, ...params },
  });
  return stage.orchestrator.decide({ inputs: asked }, key);
}

const refundedOf = (id: string): Promise<{ refunded: string }[]> =>
  stage.database.query<{ refunded: string }>('SELECT refunded::text FROM refund_case WHERE subject_id = $1', [id]);

describe('refund.create', () => {
  test('writes its own rows in the transaction of the decision and answers with its result', async () => {
    const reply = await refund('h-1', '10.00');
    expect(reply.status).toBe(201);
    expect(reply.body.outcome).toEqual({
      status: 'applied',
      result: { refundId: reply.body.effect.effectId, refundedTotal: '10.00' },
    });
    expect(reply.body.effect).toMatchObject({ kind: 'refund.create', status: 'applied' });
    const rows = await stage.database.query(`SELECT amount::text, currency FROM refund WHERE decision_id = $1`, [
      reply.body.decisionId,
    ]);
    expect(rows).toEqual([{ amount: '10.00', currency: 'EUR' }]);
  });

  test('never refunds more than the order’s total, to the last cent', async () => {
    const replies = [
      await refund('h-2', '60.00', { orderTotal: '100.00' }),
      await refund('h-2', '40.01', { orderTotal: '100.00' }),
      await refund('h-2', '40.00', { orderTotal: '100.00' }),
      await refund('h-2', '0.01'),
    ];
    expect(replies.map(({ status }) => status)).toEqual([201, 409, 201, 409]);
    expect(await refundedOf('h-2')).toEqual([{ refunded: '100.00' }]);
  });

  test('its refusal is 409 refused with a reason, recorded and replayed, and leaves nothing else behind', async () => {
    await refund('h-3', '5.00', { orderTotal: '5.00' });
    const before = await stage.tally();
    const asked = {
      inputs: inputs({ action: 'refund.create', subject: { type: 'case', id: 'h-3' }, params: { amount: '0.01' } }),
    };
    const replies: Reply[] = [];
    for (let n = 0; n < 3; n += 1) replies.push(await stage.orchestrator.decide(asked, 'h-3-refused'));
    const [first, ...again] = replies;
    expect(first?.body).toMatchObject({
      code: 'refused',
      status: 409,
      retryable: false,
      reason: expect.any(String),
      decisionId: expect.any(String),
      key: 'h-3-refused',
      ledgerEntryId: expect.any(String),
      recordedAt: expect.stringMatching(/\.\d{6}Z$/),
    });
    for (const reply of again) {
      expect([reply.status, reply.text, reply.headers.get('idempotent-replayed')]).toEqual([409, first?.text, 'true']);
      expect(reply.headers.get('idempotency-expires')).toBe(first?.headers.get('idempotency-expires'));
    }
    expect(await stage.tally()).toEqual({
      effects: before.effects,
      entries: before.entries + 1,
      decisions: before.decisions + 1,
    });
    expect(await refundedOf('h-3')).toEqual([{ refunded: '5.00' }]);
    const read = await stage.auditor.get(`/v1/decisions/${first?.body.decisionId}`);
    expect(read.body.outcome).toEqual({ status: 'refused', reason: first?.body.reason });
    expect(read.body.attempts.byDisposition).toEqual({ refused: 1, replayed: 2 });
  });

  test.each([
    ['text', ['0.1', '0.2'], '0.3', '0.3'],
    ['numbers', [0.1, 0.2], 0.3, '0.3'],
    ['many small ones', Array<string>(10).fill('0.1'), '1', '1.0'],
    ['beyond 2^53', ['9007199254740992', '1'], '9007199254740993', '9007199254740993'],
    ['with ten places', ['0.0000000001', '0.0000000002'], '0.0000000003', '0.0000000003'],
  ])('adds exact decimals: %s', async (name, amounts, orderTotal, sum) => {
    const id = `exact ${name}`;
    const statuses = [];
    for (const amount of amounts) statuses.push((await refund(id, amount, { orderTotal })).status);
    expect(statuses).toEqual(amounts.map(() => 201));
    expect(await refundedOf(id)).toEqual([{ refunded: sum }]);
    expect((await refund(id, '0.0000000001', { orderTotal })).status).toBe(409);
  });

  test('two at one instant never exceed the total together', async () => {
    await refund('h-4', '10', { orderTotal: '100' });
    const replies = await Promise.all(Array.from({ length: 8 }, () => refund('h-4', '30')));
    expect(replies.map(({ status }) => status).toSorted()).toEqual([201, 201, 201, 409, 409, 409, 409, 409]);
    expect(await refundedOf('h-4')).toEqual([{ refunded: '100' }]);
  });

  test('the totals of two tenants have nothing to do with each other', async () => {
    const globex = await stage.addTenant('globex');
    await globex.admin.put('/v1/actions/refund.create', TRANSACTIONAL);
    await refund('h-5', '100', { orderTotal: '100' });
    const asked = inputs({
      action: 'refund.create',
      subject: { type: 'case', id: 'h-5' },
      params: { amount: '100', orderTotal: '100' },
    });
    expect((await globex.orchestrator.decide({ inputs: asked })).status).toBe(201);
  });

  test('twins of one key run the handler once', async () => {
    const asked = { inputs: inputs({ action: 'refund.create', subject: { type: 'case', id: 'h-6' } }) };
    const replies = await Promise.all(
      Array.from({ length: 10 }, () =>
        stage.orchestrator.post('/v1/decisions', asked, { 'idempotency-key': 'h-6', prefer: 'wait=20' }),
      ),
    );
    expect(new Set(replies.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(replies.filter(({ headers }) => headers.get('idempotent-replayed') === null)).toHaveLength(1);
    expect(await refundedOf('h-6')).toEqual([{ refunded: '10.00' }]);
  });
});

describe('sar.file', () => {
  const file = (id: string, reportingPeriod: string, model: string, key?: string): Promise<Reply> =>
    stage.orchestrator.decide(
      {
        inputs: inputs({
          action: 'sar.file',
          subject: { type: 'case', id },
          params: { reportingPeriod },
          model: { id: model, version: '1' },
        }),
      },
      key,
    );
  const filings = (id: string): Promise<number> =>
    stage.database.count('SELECT count(*) FROM sar_filing WHERE subject_id = $1', [id]);

  test('a second report for a case and period by another model is refused, with the winner named', async () => {
    const winner = await file('s-1', '2026-Q3', 'm-1');
    const loser = await file('s-1', '2026-Q3', 'm-2');
    const { decisionId, key, recordedAt } = winner.body;
    expect([winner.status, loser.status, loser.body.code]).toEqual([201, 409, 'duplicate-subject']);
    expect(loser.body.winner).toEqual({ decisionId, key, recordedAt });
    expect((await file('s-1', '2026-Q4', 'm-1')).status).toBe(201);
    expect(await filings('s-1')).toBe(2);
    expect((await file('s-1', '2026-Q3', 'm-2')).text).toBe(loser.text);
  });

  test('of eight reports at one instant one is filed', async () => {
    const replies = await Promise.all(Array.from({ length: 8 }, (_, n) => file('s-2', '2026', `m-${n}`, `s-2-${n}`)));
    expect(replies.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409, 409, 409, 409, 409]);
    expect(new Set(replies.flatMap(({ body }) => body.winner?.decisionId ?? [])).size).toBe(1);
    expect(await filings('s-2')).toBe(1);
  });
});
