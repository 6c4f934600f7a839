import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { NOWHERE, request, setDispatchStage, type DispatchStage } from '../support/dispatching.js';
import type { Reply } from '../support/index.js';

let stage: DispatchStage;
beforeAll(async () => {
  stage = await setDispatchStage();
  await stage.act('refund.pay');
  await stage.act('refund.once', { maxAttempts: 1 }, { uniqueness: 'subject' });
  await stage.act('refund.dead', { maxAttempts: 2, url: `http://${NOWHERE}/` });
});
afterAll(() => stage?.clear());

const WAIT = { prefer: 'wait=20' };
const record = async (key: string): Promise<Record<string, unknown>> =>
  (await stage.orchestrator.get(`/v1/idempotency-records/${key}`)).body;

test('the record of a key says in_flight while it is queued and while it is called, and then how it ended', async () => {
  const script = [{ waitMs: 600 }];
  const { body } = await stage.decide('record', 'refund.pay', script);
  expect(await record('record')).toMatchObject({ status: 'in_flight', decisionId: body.decisionId, expiresAt: null });
  await stage.settled(body.decisionId);
  expect(await record('record')).toMatchObject({
    status: 'completed',
    lockedUntil: null,
    expiresAt: expect.any(String),
  });
});

test('a refusal that is waited for is the first answer, not a replay, and says how long it is kept', async () => {
  const reply = await stage.decide('refused', 'refund.pay', [{ status: 422 }], WAIT);
  expect([reply.status, reply.body.reason, reply.headers.get('idempotent-replayed')]).toEqual([
    409,
    'downstream-422',
    null,
  ]);
  expect(reply.headers.get('idempotency-expires')).not.toBeNull();
  expect(reply.body).toMatchObject({ ledgerEntryId: expect.any(String), recordedAt: expect.any(String) });
});

test.each([
  ['64 KiB is the result', 65_536, true],
  ['one byte more is not, and is identified', 65_537, false],
])('a JSON answer of %s', async (_, bytes, isResult) => {
  const text = JSON.stringify('x'.repeat(bytes - 2));
  const reply = await stage.decide(`json-${bytes}`, 'refund.pay', [{ text }], WAIT);
  expect(reply.status).toBe(201);
  const { result } = reply.body.outcome;
  if (isResult) expect(result).toBe('x'.repeat(bytes - 2));
  else expect(result).toEqual({ status: 200, contentType: 'application/json', bytes, sha256: expect.any(String) });
});

test('is failed where every try surely had no effect: refused connections, and a circuit that they opened', async () => {
  const replies: Reply[] = [];
  // Five refused connections open the circuit; the tries of the later decisions meet it open.
  for (const key of ['dead-1', 'dead-2', 'dead-3', 'dead-4', 'dead-5'])
    replies.push(await stage.decide(key, 'refund.dead', [{}], { prefer: 'wait=30' }));
  expect(replies.map(({ status, body }) => [status, body.state])).toEqual(replies.map(() => [202, 'failed']));
  expect(await record('dead-5')).toMatchObject({ status: 'failed', lockedUntil: null, expiresAt: null });
});

describe('what is unknown', () => {
  test('holds its subject and its content, until an admin has released it', async () => {
    const script = [{ status: 500 }, {}];
    const first = await stage.decide('holds', 'refund.once', script, WAIT);
    expect(first.body).toMatchObject({ code: 'outcome-unknown', retryable: false, state: 'unknown' });
    const { decisionId } = first.body;
    expect(await record('holds')).toMatchObject({ status: 'unknown', decisionId });

    const ask = (key: string, body: unknown): Promise<Reply> =>
      stage.orchestrator.post('/v1/decisions', body, { 'idempotency-key': key, prefer: 'wait=0' });
    const same = request('holds', 'refund.once', script);
    const rival = request('holds', 'refund.once', [{ status: 200 }]);
    for (const reply of [await ask('same-content', same), await ask('same-subject', rival)])
      expect(reply.body).toMatchObject({ code: 'in-flight', retryable: true, decisionId, state: 'unknown' });
    expect(stage.provider.arrivals()).not.toContainEqual(expect.objectContaining({ key: 'same-subject' }));

    await stage.admin.post(`/v1/decisions/${decisionId}/resolution`, { release: true, reason: 'not there' });
    const freed = await ask('same-subject', rival);
    expect(freed.status).toBe(202);
    expect((await stage.settled(freed.body.decisionId)).body.state).toBe('completed');
  });
});

test('its lease is the worker’s: no token of anybody else ends it, and none is ever given', async () => {
  const queued = await stage.decide('whose', 'refund.pay', [{ waitMs: 500 }]);
  expect(queued.body).not.toHaveProperty('lease');
  const path = `/v1/decisions/${queued.body.decisionId}`;
  const leaseToken = `1.${'A'.repeat(43)}`;
  for (const [route, more] of [
    ['lease', {}],
    ['completion', { outcome: { status: 'applied', result: {} } }],
    ['failure', { reason: 'x', effect: 'none' }],
  ] as const)
    expect((await stage.orchestrator.post(`${path}/${route}`, { leaseToken, ...more })).body.code).toBe('lease-lost');
  const settled = await stage.settled(queued.body.decisionId);
  expect(settled.body.effect.result).toEqual({ reference: 'ref-whose' });
});
