import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ledgered, newTurn, NoEffect, Refusal, type RunContext } from '../../libs/client/src/index.js';
import { fakeLedger, type Ledger } from './ledgers.js';
import { clientOf, errorOf, freshInputs, pause } from './support.js';

interface RefundArgs {
  invoice: string;
  amount: string;
  /** What the model words anew each time. */
  reason: string;
  part?: number | undefined;
}

let ledger: Ledger;
beforeAll(async () => {
  ledger = await fakeLedger();
});
afterAll(() => ledger?.stop());

let invoices = 0;
const args = (changes: Partial<RefundArgs> = {}): RefundArgs => ({
  invoice: `I-${(invoices += 1)}`,
  amount: '10.00',
  reason: 'the customer asked',
  ...changes,
});
const { model, promptTemplateSha256, retrievalSnapshotId, policyVersion } = freshInputs('refund.create');
const context = { model, promptTemplateSha256, retrievalSnapshotId, policyVersion };

function refundTool(
  act: (asked: RefundArgs, run: RunContext) => unknown = ({ amount }) => ({ refunded: amount }),
  changes: Partial<Parameters<typeof ledgered<RefundArgs, unknown>>[1]> = {},
) {
  const calls: RefundArgs[] = [];
  const tool = async (asked: RefundArgs, run: RunContext): Promise<unknown> => {
    calls.push(asked);
    await pause(20);
    return act(asked, run);
  };
  const wrapped = ledgered(tool, {
    ledger: clientOf(ledger, { waitSeconds: 2 }),
    action: 'refund.create',
    subject: ({ invoice }) => ({ type: 'invoice', id: invoice }),
    identify: ['amount'],
    context,
    ...changes,
  });
  return { calls, wrapped };
}

describe('a ledgered tool', () => {
  test('is called with all of its arguments and the lease, and gives its recorded result', async () => {
    const { calls, wrapped } = refundTool(({ amount }, run) => ({ amount, key: run.downstreamKeys.uuid4 }));
    const asked = args();
    expect(await wrapped(asked)).toEqual({ amount: '10.00', key: expect.stringMatching(/-4/) });
    expect(calls).toEqual([asked]);
  });

  test('registers what identifies the effect and nothing else', async () => {
    const since = ledger.road.seen.length;
    const asked = args();
    await refundTool().wrapped(asked, { evidence: { toolCallId: 'call-1', rationale: asked.reason } });
    const { inputs, evidence, note } = JSON.parse(ledger.road.seen[since]?.body ?? '');
    expect(inputs).toEqual({
      ...context,
      tenantId: ledger.tenant,
      action: 'refund.create',
      subject: { type: 'invoice', id: asked.invoice },
      params: { amount: '10.00' },
    });
    expect([evidence, note]).toEqual([{ toolCallId: 'call-1', rationale: asked.reason }, undefined]);
  });

  test('called again with other words acts once, also from another process', async () => {
    const asked = args();
    const first = await refundTool().wrapped(asked);
    const { calls, wrapped } = refundTool();
    expect(await wrapped({ ...asked, reason: 'in other words' })).toEqual(first);
    expect(calls).toEqual([]);
  });

  test('with another identity acts again', async () => {
    const { calls, wrapped } = refundTool();
    const asked = args();
    await wrapped(asked);
    await wrapped({ ...asked, amount: '11.00' });
    expect(calls).toHaveLength(2);
  });

  test('a call without what identifies it is an error, and nothing is sent', async () => {
    const { calls, wrapped } = refundTool(undefined, { identify: ['amount', 'part'] });
    const since = ledger.road.seen.length;
    expect(await errorOf(wrapped(args()))).toMatchObject({
      name: 'TypeError',
      message: expect.stringMatching(/"part"/),
    });
    expect([calls.length, ledger.road.seen.length]).toEqual([0, since]);
    expect(() => refundTool(undefined, { identify: [] })).toThrow(TypeError);
  });

  test('asks for its context at each call, where that is a function', async () => {
    let snapshot = 0;
    const { calls, wrapped } = refundTool(undefined, {
      context: () => ({ ...context, retrievalSnapshotId: `rs-${(snapshot += 1)}` }),
    });
    const asked = args();
    await wrapped(asked);
    await wrapped(asked);
    expect(calls).toHaveLength(2);
  });
});

describe('in one turn', () => {
  test('a repeated call is one call, one after the other and at the same time', async () => {
    const { calls, wrapped } = refundTool();
    const turn = newTurn();
    const asked = args();
    const since = ledger.road.seen.length;
    const [first, twin] = await Promise.all([wrapped(asked, { turn }), wrapped({ ...asked, reason: '…' }, { turn })]);
    const third = await wrapped(asked, { turn });
    expect([twin, third]).toEqual([first, first]);
    expect(calls).toHaveLength(1);
    expect(ledger.road.seen.slice(since).filter(({ route }) => route === 'register')).toHaveLength(1);
  });

  test('a note that is worded anew does not make it another call', async () => {
    const { calls, wrapped } = refundTool(undefined, { note: ({ reason }) => reason });
    const turn = newTurn();
    const asked = args();
    const first = await wrapped(asked, { turn });
    expect(await wrapped({ ...asked, reason: 'in other words' }, { turn })).toEqual(first);
    expect(calls).toHaveLength(1);
    // Without the turn it is the service that tells the agent, and names the decision that stands.
    expect(await errorOf(wrapped({ ...asked, reason: 'in other words' }))).toMatchObject({
      name: 'KeyReused',
      state: 'completed',
    });
  });

  test('tools of different actions do not mix', async () => {
    const turn = newTurn();
    const asked = args();
    await refundTool().wrapped(asked, { turn });
    const other = refundTool(() => 'other', { action: 'refund.once' });
    expect(await other.wrapped(asked, { turn })).toBe('other');
  });

  test('a refusal is remembered; a failure without effect is not', async () => {
    const turn = newTurn();
    const refused = refundTool(() => {
      throw new Refusal('limit-exceeded');
    });
    const asked = args();
    const since = ledger.road.seen.length;
    const first = await errorOf(refused.wrapped(asked, { turn }));
    const seen = ledger.road.seen.length;
    expect(seen).toBeGreaterThan(since);
    expect(await errorOf(refused.wrapped(asked, { turn }))).toBe(first);
    expect(ledger.road.seen).toHaveLength(seen);

    let tries = 0;
    const failing = refundTool(() => {
      if ((tries += 1) === 1) throw new NoEffect('not reached');
      return 'reached';
    });
    const other = args();
    expect(await errorOf(failing.wrapped(other, { turn }))).toMatchObject({ name: 'RunFailed' });
    expect(await failing.wrapped(other, { turn })).toBe('reached');
  });

  test('another turn asks again, and is told what was recorded', async () => {
    const { calls, wrapped } = refundTool();
    const asked = args();
    const first = await wrapped(asked, { turn: newTurn() });
    expect(await wrapped(asked, { turn: newTurn() })).toEqual(first);
    expect(calls).toHaveLength(1);
  });
});
