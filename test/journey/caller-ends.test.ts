import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { atOnce, claim } from '../support/leases.js';
import {
  clientsOf,
  createTenant,
  freshDatabase,
  inputs,
  startService,
  type Client,
  type Service,
  type TestDatabase,
} from '../support/index.js';

const APPLIED = { status: 'applied', result: { refundId: 're_93' }, externalRef: 're_93' };

let database: TestDatabase;
let service: Service;
let clients: Record<'admin' | 'orchestrator' | 'auditor', Client>;
let orchestrator: Client;
let subjects = 0;

const freshSubject = (): { type: string; id: string } => {
  subjects += 1;
  return { type: 'case', id: `E-${subjects}` };
};

beforeAll(async () => {
  database = await freshDatabase();
  service = await startService({ DATABASE_URL: database.url, DATABASE_POOL_SIZE: '5' });
  clients = clientsOf(service.url, await createTenant(database.url, 'acme'));
  ({ orchestrator } = clients);
  await clients.admin.put('/v1/actions/pay.send', { execution: 'caller' });
  await clients.admin.put('/v1/actions/pay.once', { execution: 'caller', uniqueness: 'subject' });
  await clients.admin.put('/v1/actions/pay.period', { execution: 'caller', uniqueness: 'subject-and-period' });
  await clients.admin.put('/v1/actions/pay.refuse', { execution: 'caller', sameContent: 'refuse' });
});

afterAll(async () => {
  await service?.stop();
  await database?.drop();
});

describe('a failure without an effect', () => {
  test('frees the key: the next request runs again, with a higher number', async () => {
    const body = { inputs: inputs({ action: 'pay.send', subject: freshSubject() }) };
    const first = await claim(orchestrator, body);
    const failed = await first.fail('none');
    const again = await first.fail('none');
    const second = await claim(orchestrator, body);

    expect(failed.status).toBe(200);
    expect(failed.body).toEqual({ decisionId: first.decisionId, state: 'failed' });
    expect(again.text).toBe(failed.text);
    expect(second.decisionId).toBe(first.decisionId);
    expect(second.reply.body.lease.number).toBe(2);
    expect((await first.complete(APPLIED)).body.code).toBe('lease-lost');
  });

  test('frees the subject and the content for another key', async () => {
    const body = { inputs: inputs({ action: 'pay.once', subject: freshSubject() }) };
    const first = await claim(orchestrator, body, 'ends-1');
    await first.fail('none');
    const other = await claim(orchestrator, body, 'ends-2');

    expect(other.decisionId).not.toBe(first.decisionId);
    expect((await other.complete(APPLIED)).status).toBe(200);
    // The first key, when it comes back, finds the content decided.
    const back = await orchestrator.decide(body, 'ends-1');
    expect(back.status).toBe(201);
    expect(back.body.decisionId).toBe(other.decisionId);
  });
});

describe('what is unknown', () => {
  const unknown = async (action = 'pay.send'): Promise<{ body: unknown; decisionId: string; path: string }> => {
    const body = { inputs: inputs({ action, subject: freshSubject() }) };
    const held = await claim(orchestrator, body);
    expect((await held.fail('unknown')).body).toEqual({ decisionId: held.decisionId, state: 'unknown' });
    expect((await held.fail('unknown')).status).toBe(200);
    return { body, decisionId: held.decisionId, path: `/v1/decisions/${held.decisionId}/resolution` };
  };

  test('is never run again by itself', async () => {
    const { body, decisionId } = await unknown();
    const next = await orchestrator.decide(body);

    expect(next.status).toBe(409);
    expect(next.body).toMatchObject({ code: 'outcome-unknown', retryable: false, decisionId, state: 'unknown' });
  });

  test('is resolved by an admin with an outcome, which the key then replays', async () => {
    const { body, path } = await unknown();
    const resolved = await clients.admin.post(path, { outcome: APPLIED });
    const again = await clients.admin.post(path, { outcome: APPLIED });
    const other = await clients.admin.post(path, { outcome: { status: 'refused', reason: 'not-found' } });
    const replay = await orchestrator.decide(body);

    expect(resolved.status).toBe(200);
    expect(again.text).toBe(resolved.text);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(other.status).toBe(422);
    expect(replay.status).toBe(201);
    expect(replay.text).toBe(resolved.text);
  });

  test('is released by an admin, and then runs again; a second release is answered as it was', async () => {
    const { body, decisionId, path } = await unknown('pay.once');
    const release = { release: true, reason: 'the provider has no such payment' };
    const released = await clients.admin.post(path, release);

    expect(released.body).toEqual({ decisionId, state: 'failed' });
    expect((await clients.admin.post(path, release)).body).toEqual({ decisionId, state: 'failed' });
    expect((await claim(orchestrator, body)).reply.body.lease.number).toBe(2);
    expect((await clients.admin.post(path, release)).body).toMatchObject({ code: 'not-unknown', state: 'in_flight' });
  });

  test.each([
    ['neither', {}],
    ['both', { outcome: APPLIED, release: true, reason: 'x' }],
    ['a release without its reason', { release: true }],
    ['release: false', { release: false, reason: 'x' }],
  ])('is not resolved by %s', async (_what, body) => {
    const { path } = await unknown();

    expect((await clients.admin.post(path, body)).status).toBe(400);
  });

  test('is the only thing that can be resolved, and only by an admin', async () => {
    const held = await claim(orchestrator, { inputs: inputs({ action: 'pay.send', subject: freshSubject() }) });
    const path = `/v1/decisions/${held.decisionId}/resolution`;

    expect((await clients.admin.post(path, { outcome: APPLIED })).body).toMatchObject({
      code: 'not-unknown',
      state: 'in_flight',
    });
    expect((await orchestrator.post(path, { outcome: APPLIED })).status).toBe(403);
    expect((await clients.auditor.post(path, { outcome: APPLIED })).status).toBe(403);
    expect(
      (await clients.admin.post(`/v1/decisions/${held.decisionId}/lease`, { leaseToken: held.token })).status,
    ).toBe(403);
  });
});

describe('what a claim holds', () => {
  test('another key for the subject is told to wait for the holder, and nothing is recorded of it', async () => {
    const subject = freshSubject();
    const held = await claim(orchestrator, { inputs: inputs({ action: 'pay.once', subject }) });
    const other = { inputs: inputs({ action: 'pay.once', subject, params: { n: 2 } }) };
    const waiting = await atOnce(orchestrator, other, 'holds-2');

    expect(waiting.status).toBe(409);
    expect(waiting.body).toMatchObject({ code: 'in-flight', retryable: true, decisionId: held.decisionId });
    expect((await orchestrator.get('/v1/idempotency-records/holds-2')).status).toBe(404);

    await held.complete(APPLIED);
    const refused = await orchestrator.decide(other, 'holds-2');
    expect(refused.status).toBe(409);
    expect(refused.body).toMatchObject({ code: 'duplicate-subject', winner: { decisionId: held.decisionId } });
  });

  test('it holds the subject through unknown, and another period is free', async () => {
    const subject = freshSubject();
    const of = (reportingPeriod: string): unknown => ({
      inputs: inputs({ action: 'pay.period', subject, params: { reportingPeriod, n: Math.random() } }),
    });
    const held = await claim(orchestrator, of('2026-Q3'));
    await held.fail('unknown');

    expect((await atOnce(orchestrator, of('2026-Q3'))).body).toMatchObject({
      code: 'in-flight',
      decisionId: held.decisionId,
    });
    expect((await claim(orchestrator, of('2026-Q4'))).reply.status).toBe(202);
  });

  test('the same content under another key is a twin of the first: it waits, then replays', async () => {
    const body = { inputs: inputs({ action: 'pay.send', subject: freshSubject() }) };
    const held = await claim(orchestrator, body, 'twin-1');
    expect((await atOnce(orchestrator, body, 'twin-2')).body).toMatchObject({
      code: 'in-flight',
      decisionId: held.decisionId,
    });

    const waiting = orchestrator.post('/v1/decisions', body, { prefer: 'wait=10', 'idempotency-key': 'twin-2' });
    await sleep(300);
    const done = await held.complete(APPLIED);
    const twin = await waiting;
    expect(twin.status).toBe(201);
    expect(twin.text).toBe(done.text);
    expect((await orchestrator.get('/v1/idempotency-records/twin-2')).body.decisionId).toBe(held.decisionId);
  });

  test('the same content is refused under another key where the action says so, once it is decided', async () => {
    const body = { inputs: inputs({ action: 'pay.refuse', subject: freshSubject() }) };
    const held = await claim(orchestrator, body, 'refuse-1');
    await held.complete(APPLIED);
    const other = await orchestrator.decide(body, 'refuse-2');

    expect(other.body).toMatchObject({
      code: 'same-content',
      winner: { decisionId: held.decisionId, key: 'refuse-1' },
    });
  });

  test('a transactional decision waits for a holder outside too, when the action has changed its execution', async () => {
    const subject = freshSubject();
    await clients.admin.put('/v1/actions/pay.moves', { execution: 'caller', uniqueness: 'subject' });
    const held = await claim(orchestrator, { inputs: inputs({ action: 'pay.moves', subject }) });
    await clients.admin.put('/v1/actions/pay.moves', { execution: 'transactional', uniqueness: 'subject' });
    const other = { inputs: inputs({ action: 'pay.moves', subject, params: { n: 2 } }) };

    expect((await atOnce(orchestrator, other)).body).toMatchObject({ code: 'in-flight', decisionId: held.decisionId });
    await held.fail('none');
    expect((await orchestrator.decide(other)).status).toBe(201);
  });

  test('a twin that waits long enough is told the outcome', async () => {
    const body = { inputs: inputs({ action: 'pay.send', subject: freshSubject() }) };
    const held = await claim(orchestrator, body);
    const waiting = orchestrator.decide(body);
    await sleep(300);
    const done = await held.complete(APPLIED);

    expect((await waiting).text).toBe(done.text);
  });

  test('decisions without an outcome are listed by their state', async () => {
    const held = await claim(orchestrator, { inputs: inputs({ action: 'pay.send', subject: freshSubject() }) });
    const { body } = await clients.auditor.get('/v1/decisions?state=in_flight&limit=500');
    const ids = body.items.map((row: { decisionId: string }) => row.decisionId);

    expect(ids).toContain(held.decisionId);
    expect(new Set(body.items.map((row: { state: string }) => row.state))).toEqual(new Set(['in_flight']));
  });
});
