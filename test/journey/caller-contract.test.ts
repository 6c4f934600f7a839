import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { atOnce, claim, letExpire } from '../support/leases.js';
import { Client, inputs } from '../support/index.js';
import { putActions, setStage, type Cast, type Stage } from '../support/stage.js';

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;
const TOKEN = /^[1-9]\d*\.[A-Za-z0-9_-]{43}$/;
const RESULT = { refundId: 're_93' };
const APPLIED = { status: 'applied', result: RESULT, externalRef: 're_93' };
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
const record = async (key: string): Promise<Record<string, unknown>> =>
  (await orchestrator.get(`/v1/idempotency-records/${encodeURIComponent(key)}`)).body;

describe('the rules of a caller action', () => {
  test.each([1, 3600])('a lease may be of %i seconds, and is', async (leaseSeconds) => {
    const put = await admin.put(`/v1/actions/pay.n${leaseSeconds}`, { execution: 'caller', leaseSeconds });
    expect(put.body).toMatchObject({ execution: 'caller', leaseSeconds, onExpiredLease: 'reclaim' });
    const { reply } = await claim(orchestrator, about(`pay.n${leaseSeconds}`));
    const left = await stage.database.count(`SELECT extract(epoch FROM $1::timestamptz - clock_timestamp())`, [
      reply.body.lease.lockedUntil,
    ]);
    expect(left).toBeLessThanOrEqual(leaseSeconds);
    expect(left).toBeGreaterThan(leaseSeconds - 30);
  });

  test.each([
    ['leaseSeconds', 0],
    ['leaseSeconds', 3601],
    ['leaseSeconds', 1.5],
    ['onExpiredLease', 'retry'],
    ['onExpiredLease', null],
  ])('%s: %j is 400', async (name, value) => {
    const reply = await admin.put('/v1/actions/pay.wrong', { execution: 'caller', [name]: value });
    expect([reply.status, reply.body.errors[0].pointer]).toEqual([400, `/${name}`]);
  });
});

describe('a claim', () => {
  test('is answered with these members and no others', async () => {
    const { reply } = await claim(orchestrator, about());
    expect(reply.body).toEqual({
      decisionId: expect.any(String),
      key: expect.stringMatching(/^dk_acme_[0-9a-f]{40}$/),
      keySource: 'content',
      contentKey: reply.body.key,
      state: 'in_flight',
      lease: { token: expect.stringMatching(TOKEN), number: 1, lockedUntil: expect.stringMatching(TIME) },
      downstreamKeys: expect.objectContaining({ key: reply.body.key }),
    });
    expect(reply.headers.get('idempotency-expires')).toBeNull();
    expect(reply.headers.get('idempotent-replayed')).toBeNull();
  });

  test('does not wait, however long the request would', async () => {
    const startedAt = performance.now();
    const reply = await orchestrator.post('/v1/decisions', about(), { prefer: 'wait=30' });
    expect(reply.status).toBe(202);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
  });

  test.each(['a'.repeat(22), 'Z'.repeat(64), 'AZaz09-_AZaz09-_AZaz09'])('takes the nonce %s', async (leaseNonce) => {
    expect((await orchestrator.decide(about('pay.send', { leaseNonce }))).status).toBe(202);
  });

  test.each(['a'.repeat(21), 'a'.repeat(65), `${'a'.repeat(21)}+`, `${'a'.repeat(21)}=`, '', null])(
    'refuses the nonce %j',
    async (leaseNonce) => {
      const reply = await orchestrator.decide(about('pay.send', { leaseNonce }));
      expect([reply.status, reply.body.errors[0].pointer]).toEqual([400, '/leaseNonce']);
    },
  );

  test('is given again to the nonce of the current lease only, and as it stands after a renewal', async () => {
    const body = about('pay.send', { leaseNonce: 'nonce-of-the-first-holder' });
    const first = await claim(orchestrator, body);
    const { lockedUntil } = (await first.renew()).body;
    const { body: again } = await claim(orchestrator, body).then(({ reply }) => reply);
    expect(again).toEqual({ ...first.reply.body, lease: { ...first.reply.body.lease, lockedUntil } });

    await letExpire(stage.database, first.decisionId);
    const second = await claim(orchestrator, { ...body, leaseNonce: 'nonce-of-the-second-holder' });
    expect(second.reply.body.lease.number).toBe(2);
    expect((await atOnce(orchestrator, body)).body).toMatchObject({ code: 'in-flight', decisionId: first.decisionId });
    const { reply } = await claim(orchestrator, { ...body, leaseNonce: 'nonce-of-the-second-holder' });
    expect(reply.body.lease).toEqual(second.reply.body.lease);
  });

  test('that its own nonce reclaims has another token: the first one has lost', async () => {
    const body = about('pay.send', { leaseNonce: 'nonce-of-the-one-holder' });
    const first = await claim(orchestrator, body);
    await letExpire(stage.database, first.decisionId);
    const second = await claim(orchestrator, body);
    expect(second.reply.body.lease.number).toBe(2);
    expect((await first.complete(APPLIED)).body.code).toBe('lease-lost');
    expect((await second.complete(APPLIED)).status).toBe(200);
  });
});

describe('a lease that ran out', () => {
  test.each(['pay.once', 'pay.blind'])(
    'of %s still holds its subject and its content: another key waits',
    async (action) => {
      const body = about(action);
      const held = await claim(orchestrator, body, `over-${subjects}`);
      await letExpire(stage.database, held.decisionId);
      const other = await atOnce(orchestrator, body, `after-${subjects}`);
      expect(other.body).toMatchObject({ code: 'in-flight', retryable: true, decisionId: held.decisionId });
      expect(Number(other.headers.get('retry-after'))).toBe(1);
      expect(await record(`after-${subjects}`)).toMatchObject({ code: 'not-found' });
      expect(await record(`over-${subjects}`)).toMatchObject({ status: 'in_flight' });
    },
  );
});

describe('who may report', () => {
  const REPORTS: readonly [string, 'orchestrator' | 'admin', (token: string) => unknown][] = [
    ['lease', 'orchestrator', (leaseToken) => ({ leaseToken })],
    ['completion', 'orchestrator', (leaseToken) => ({ leaseToken, outcome: APPLIED })],
    ['failure', 'orchestrator', (leaseToken) => ({ leaseToken, reason: 'x', effect: 'none' })],
    ['resolution', 'admin', () => RELEASE],
  ];

  test.each(REPORTS)('a %s: the %s, of the same tenant, and with these members only', async (route, role, bodyOf) => {
    const held = await claim(orchestrator, about());
    if (role === 'admin') await held.fail('unknown');
    const path = `/v1/decisions/${held.decisionId}/${route}`;
    const roles: readonly (keyof Pick<Cast, 'admin' | 'orchestrator' | 'auditor'>)[] = [
      'admin',
      'orchestrator',
      'auditor',
    ];
    for (const other of roles.filter((one) => one !== role)) {
      const { status, body } = await stage[other].post(path, bodyOf(held.token));
      expect([other, status, body.code]).toEqual([other, 403, 'forbidden']);
    }
    expect((await new Client(stage.service.url).post(path, bodyOf(held.token))).status).toBe(401);
    const stranger = await stage.addTenant(`t-${route}`);
    await putActions(stranger.admin, { 'pay.send': { execution: 'caller' } });
    expect((await stranger[role].post(path, bodyOf(held.token))).body).toMatchObject({
      status: 404,
      code: 'not-found',
    });
    const more = await stage[role].post(path, { ...(bodyOf(held.token) as object), more: 1 });
    expect([more.status, more.body.code, more.body.errors[0].pointer]).toEqual([400, 'validation-failed', '/more']);
    expect((await stage[role].post(path, bodyOf(held.token))).status).toBe(200);
  });
});
