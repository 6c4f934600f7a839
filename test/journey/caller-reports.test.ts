import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { atOnce, claim, type Claim } from '../support/leases.js';
import { inputs, type Client, type Reply } from '../support/index.js';
import { setStage, type Stage } from '../support/stage.js';

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;
const RESULT = { refundId: 're_93' };
const APPLIED = { status: 'applied', result: RESULT, externalRef: 're_93' };
const REFUSED = { status: 'refused', reason: 'card-closed' };
const RELEASE = { release: true, reason: 'the provider has no such payment' };

let stage: Stage;
let orchestrator: Client;
let admin: Client;
let subjects = 0;
beforeAll(async () => {
  const caller = { execution: 'caller' };
  stage = await setStage({
    actions: {
      'pay.send': caller,
      'pay.once': { ...caller, uniqueness: 'subject' },
      'pay.blind': { ...caller, onExpiredLease: 'unknown' },
    },
  });
  ({ orchestrator, admin } = stage);
});
afterAll(() => stage?.clear());

const about = (action = 'pay.send', changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> => {
  subjects += 1;
  return { inputs: inputs({ action, subject: { type: 'case', id: `S-${subjects}` } }), ...changes };
};
const resolve = ({ decisionId }: Claim, body: unknown): Promise<Reply> =>
  admin.post(`/v1/decisions/${decisionId}/resolution`, body);
const record = async (key: string): Promise<Record<string, unknown>> =>
  (await orchestrator.get(`/v1/idempotency-records/${encodeURIComponent(key)}`)).body;
const retention = (reply: Reply): number =>
  Date.parse(reply.headers.get('idempotency-expires') ?? '') - Date.parse(`${reply.body.recordedAt.slice(0, 19)}Z`);

describe('what is reported', () => {
  test('a renewal is answered with the time that the lease then ends, and the record has it', async () => {
    const held = await claim(orchestrator, about());
    const { status, body } = await held.renew();
    expect([status, body]).toEqual([200, { lockedUntil: expect.stringMatching(TIME) }]);
    expect(await record(held.reply.body.key)).toMatchObject({ status: 'in_flight', ...body });
  });

  test.each([
    ['with a reference', APPLIED, { externalRef: 're_93' }],
    ['without one', { status: 'applied', result: null }, {}],
  ])('a completion %s is answered with the body of a decision', async (_, outcome, members) => {
    const body = about();
    const held = await claim(orchestrator, body);
    const done = await held.complete(outcome);
    const { decisionId, key, contentKey } = held.reply.body;
    expect([done.status, done.body]).toEqual([
      200,
      {
        decisionId,
        key,
        keySource: 'content',
        contentKey,
        state: 'completed',
        outcome: { status: 'applied', result: outcome.result },
        effect: { effectId: expect.any(String), kind: 'pay.send', status: 'applied', ...members },
        ledgerEntryId: expect.any(String),
        recordedAt: expect.stringMatching(TIME),
      },
    ]);
    const replay = await orchestrator.decide(body);
    expect([replay.status, replay.text, replay.headers.get('location')]).toEqual([
      201,
      done.text,
      `/v1/decisions/${decisionId}`,
    ]);
    for (const reply of [done, replay]) expect(retention(reply)).toBe(90 * 86_400_000);
    expect(await record(key)).toMatchObject({ status: 'completed', decisionId, lockedUntil: null });
  });

  test('a refusal is a recorded problem, without a detail too, and its token may send it again', async () => {
    const body = about();
    const held = await claim(orchestrator, body);
    const done = await held.complete(REFUSED);
    const again = await held.complete(REFUSED);
    expect([done.status, done.body]).toEqual([
      409,
      expect.objectContaining({
        code: 'refused',
        reason: 'card-closed',
        retryable: false,
        decisionId: held.decisionId,
        key: held.reply.body.key,
        ledgerEntryId: expect.any(String),
        recordedAt: expect.stringMatching(TIME),
      }),
    ]);
    expect([again.status, again.text, again.headers.get('idempotent-replayed')]).toEqual([409, done.text, 'true']);
    expect((await held.complete({ ...REFUSED, detail: 'Another.' })).body.code).toBe('fingerprint-mismatch');
    for (const reply of [done, again, await orchestrator.decide(body)]) expect(retention(reply)).toBe(90 * 86_400_000);
    expect(await record(held.reply.body.key)).toMatchObject({ status: 'completed' });
  });

  test('the same outcome, spelled otherwise, is the same; another names the decision and its state', async () => {
    const held = await claim(orchestrator, about());
    const path = `/v1/decisions/${held.decisionId}/completion`;
    const spelled = (text: string): Promise<Reply> => orchestrator.send('POST', path, { body: text });
    const done = await spelled(
      `{"leaseToken":"${held.token}","outcome":{"status":"applied","result":{"a":1,"b":[2]}}}`,
    );
    const again = await spelled(
      `{"outcome":{"result":{"b":[2.0],"a":1e0},"status":"applied"},"leaseToken":"${held.token}"}`,
    );
    expect([again.status, again.text]).toEqual([200, done.text]);
    const other = await held.complete({ status: 'applied', result: { a: 1 } });
    expect([other.status, other.body]).toEqual([
      422,
      expect.objectContaining({ code: 'fingerprint-mismatch', decisionId: held.decisionId, state: 'completed' }),
    ]);
  });

  test.each(['none', 'unknown'] as const)(
    'a failure (%s) leaves its state in the record, and says it again',
    async (effect) => {
      const held = await claim(orchestrator, about());
      const state = effect === 'none' ? 'failed' : 'unknown';
      for (const replayed of [null, 'true']) {
        const reply = await held.fail(effect);
        expect([reply.status, reply.body]).toEqual([200, { decisionId: held.decisionId, state }]);
        expect(reply.headers.get('idempotent-replayed')).toBe(replayed);
      }
      expect(await record(held.reply.body.key)).toEqual({
        key: held.reply.body.key,
        keySource: 'content',
        status: state,
        fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/),
        decisionId: held.decisionId,
        lockedUntil: null,
        createdAt: expect.stringMatching(TIME),
        expiresAt: null,
      });
    },
  );
});

describe('what is unknown', () => {
  test('may still be completed by the last holder, who said so', async () => {
    const held = await claim(orchestrator, about());
    await held.fail('unknown');
    expect((await held.complete(APPLIED)).status).toBe(200);
  });

  test('is lost for its last holder once it is resolved, and for the admin once it is completed', async () => {
    const resolved = await claim(orchestrator, about());
    await resolved.fail('unknown');
    expect((await resolve(resolved, { outcome: APPLIED })).status).toBe(200);
    expect((await resolved.complete(APPLIED)).body).toMatchObject({
      code: 'lease-lost',
      decisionId: resolved.decisionId,
      state: 'completed',
    });

    const completed = await claim(orchestrator, about());
    await completed.fail('unknown');
    await completed.complete(APPLIED);
    expect((await resolve(completed, { outcome: APPLIED })).body).toMatchObject({
      code: 'not-unknown',
      retryable: false,
      decisionId: completed.decisionId,
      state: 'completed',
    });
  });

  test('is resolved as refused, and that is what the key replays', async () => {
    const body = about();
    const held = await claim(orchestrator, body);
    await held.fail('unknown');
    const resolved = await resolve(held, { outcome: REFUSED });
    expect([resolved.status, resolved.body.code, resolved.body.reason]).toEqual([409, 'refused', 'card-closed']);
    expect((await orchestrator.decide(body)).text).toBe(resolved.text);
  });

  test('is released, again as a replay, and its subject and content are free for another key', async () => {
    const body = about('pay.once');
    const held = await claim(orchestrator, body, `first-${subjects}`);
    await held.fail('unknown');
    expect((await atOnce(orchestrator, body, `other-${subjects}`)).body).toMatchObject({
      code: 'in-flight',
      retryable: true,
      decisionId: held.decisionId,
      state: 'unknown',
    });
    for (const replayed of [null, 'true']) {
      const reply = await resolve(held, RELEASE);
      expect([reply.status, reply.body]).toEqual([200, { decisionId: held.decisionId, state: 'failed' }]);
      expect(reply.headers.get('idempotent-replayed')).toBe(replayed);
    }
    expect((await claim(orchestrator, body, `other-${subjects}`)).decisionId).not.toBe(held.decisionId);
  });
});
