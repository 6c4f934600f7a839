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

const LEASE_SECONDS = 2;
const AFTER_THE_LEASE_MS = LEASE_SECONDS * 1000 + 200;
const NONCE = 'q7Jm2xVw9Lr4Tz8Nc5Bd1K';
const APPLIED = { status: 'applied', result: { refundId: 're_93' }, externalRef: 're_93' };
const REFUSED = { status: 'refused', reason: 'card-closed', detail: 'The card was closed.' };

let database: TestDatabase;
let service: Service;
let clients: Record<'admin' | 'orchestrator' | 'auditor', Client>;
let orchestrator: Client;
let subjects = 0;

/** A decision about a subject that no other test has touched. */
const about = (action: string, changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> => {
  subjects += 1;
  return { inputs: inputs({ action, subject: { type: 'case', id: `L-${subjects}` } }), ...changes };
};

beforeAll(async () => {
  database = await freshDatabase();
  service = await startService({ DATABASE_URL: database.url, DATABASE_POOL_SIZE: '5' });
  clients = clientsOf(service.url, await createTenant(database.url, 'acme'));
  ({ orchestrator } = clients);
  const rules = { execution: 'caller', leaseSeconds: LEASE_SECONDS };
  await clients.admin.put('/v1/actions/pay.send', rules);
  await clients.admin.put('/v1/actions/pay.once', { ...rules, uniqueness: 'subject' });
  await clients.admin.put('/v1/actions/pay.blind', { ...rules, onExpiredLease: 'unknown' });
});

afterAll(async () => {
  await service?.stop();
  await database?.drop();
});

describe('a claim', () => {
  test('gives a lease, the fencing number 1, and the key in the forms that are passed on', async () => {
    const { reply } = await claim(orchestrator, about('pay.send'), 'k-first');

    expect(reply.body).toMatchObject({ key: 'k-first', keySource: 'client', state: 'in_flight', lease: { number: 1 } });
    expect(Object.keys(reply.body.downstreamKeys)).toEqual(['key', 'hex40', 'hex32', 'uuid4']);
    expect(reply.body.lease.lockedUntil).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  });

  test('is not final: no entry, no effect, and the record says in_flight and until when', async () => {
    const { decisionId, reply } = await claim(orchestrator, about('pay.send'));
    const record = await orchestrator.get(`/v1/idempotency-records/${reply.body.key}`);
    const decision = await orchestrator.get(`/v1/decisions/${decisionId}`);

    expect(record.body).toMatchObject({ status: 'in_flight', lockedUntil: reply.body.lease.lockedUntil });
    expect(decision.body).toMatchObject({ state: 'in_flight', outcome: null, effect: null, ledgerEntry: null });
  });

  test('is given again, the same, to whoever shows its nonce', async () => {
    const body = about('pay.send', { leaseNonce: NONCE });
    const first = await claim(orchestrator, body);
    const again = await orchestrator.decide(body);

    expect(again.status).toBe(202);
    expect(again.body).toEqual(first.reply.body);
  });

  test.each([undefined, 'AAAAAAAAAAAAAAAAAAAAAA'])(
    'is not given to a twin with the nonce %s, which is told to wait',
    async (leaseNonce) => {
      const body = about('pay.send', { leaseNonce: NONCE });
      const { decisionId } = await claim(orchestrator, body);
      const twin = await atOnce(orchestrator, { ...body, leaseNonce });

      expect(twin.status).toBe(409);
      expect(twin.body).toMatchObject({ code: 'in-flight', retryable: true, decisionId, state: 'in_flight' });
      expect(Number(twin.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
      expect(Number(twin.headers.get('retry-after'))).toBeLessThanOrEqual(LEASE_SECONDS);
    },
  );

  test.each(['short', 'x'.repeat(65), 'has a space in it 123456', 7])('refuses the nonce %j', async (leaseNonce) => {
    const reply = await orchestrator.decide(about('pay.send', { leaseNonce }));

    expect(reply.status).toBe(400);
    expect(reply.body.errors[0].pointer).toBe('/leaseNonce');
  });

  test('with another request under its key is a mismatch while it is in flight', async () => {
    await claim(orchestrator, about('pay.send'), 'k-mismatch');
    const other = await orchestrator.decide(about('pay.send'), 'k-mismatch');

    expect(other.status).toBe(422);
    expect(other.body).toMatchObject({ code: 'fingerprint-mismatch', state: 'in_flight' });
  });
});

describe('a completion', () => {
  test('records effect, entry and response, and the key replays its body as 201', async () => {
    const body = about('pay.send');
    const held = await claim(orchestrator, body);
    const done = await held.complete(APPLIED);
    const replay = await orchestrator.decide(body);

    expect(done.status).toBe(200);
    expect(done.body).toMatchObject({
      decisionId: held.decisionId,
      state: 'completed',
      outcome: { status: 'applied', result: APPLIED.result },
      effect: { kind: 'pay.send', status: 'applied', externalRef: 're_93' },
    });
    expect(replay.status).toBe(201);
    expect(replay.text).toBe(done.text);
    expect(replay.headers.get('idempotent-replayed')).toBe('true');
  });

  test('sent again is answered as it was; with another outcome it is a mismatch', async () => {
    const held = await claim(orchestrator, about('pay.send'));
    const done = await held.complete(APPLIED);
    const again = await held.complete(APPLIED);
    const other = await held.complete(REFUSED);

    expect(again.text).toBe(done.text);
    expect(again.status).toBe(200);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(other.status).toBe(422);
    expect(other.body.code).toBe('fingerprint-mismatch');
  });

  test('as a refusal is the problem, and the key replays it', async () => {
    const body = about('pay.send');
    const held = await claim(orchestrator, body);
    const done = await held.complete(REFUSED);
    const replay = await orchestrator.decide(body);

    expect(done.status).toBe(409);
    expect(done.headers.get('content-type')).toContain('application/problem+json');
    expect(done.body).toMatchObject({ code: 'refused', reason: 'card-closed', detail: 'The card was closed.' });
    expect(replay.status).toBe(409);
    expect(replay.text).toBe(done.text);
  });

  test.each([
    ['/outcome/result', { status: 'applied' }],
    ['/outcome/reason', { status: 'applied', result: {}, reason: 'x' }],
    ['/outcome/reason', { status: 'refused' }],
    ['/outcome/result', { status: 'refused', reason: 'x', result: {} }],
    ['/outcome/status', { status: 'perhaps', result: {} }],
    ['/outcome/extra', { status: 'applied', result: {}, extra: 1 }],
  ])('that is wrong at %s is refused and leaves the lease as it was', async (pointer, outcome) => {
    const held = await claim(orchestrator, about('pay.send'));
    const wrong = await held.complete(outcome);

    expect(wrong.status).toBe(400);
    expect(wrong.body.errors.map((place: { pointer: string }) => place.pointer)).toContain(pointer);
    expect((await held.complete(APPLIED)).status).toBe(200);
  });

  test('with a token that was never given is lease-lost, and is on record', async () => {
    const { decisionId } = await claim(orchestrator, about('pay.send'));
    const forged = await orchestrator.post(`/v1/decisions/${decisionId}/completion`, {
      leaseToken: `1.${'A'.repeat(43)}`,
      outcome: APPLIED,
    });
    const { body } = await orchestrator.get(`/v1/decisions/${decisionId}`);

    expect(forged.status).toBe(409);
    expect(forged.body).toMatchObject({ code: 'lease-lost', retryable: false, decisionId, state: 'in_flight' });
    expect(body.attempts.byDisposition.lease_lost).toBe(1);
  });

  test('of a decision that is not there is 404', async () => {
    const reply = await orchestrator.post('/v1/decisions/0199c1f0-6b3a-7c52-a1de-5b8c1f0e2d41/completion', {
      leaseToken: 'x',
      outcome: APPLIED,
    });

    expect(reply.status).toBe(404);
  });
});

describe('a lease that ran out', () => {
  test('is renewed in time, and is then not taken', async () => {
    const body = about('pay.send');
    const held = await claim(orchestrator, body);
    await sleep(AFTER_THE_LEASE_MS / 2);
    const renewed = await held.renew();
    await sleep(AFTER_THE_LEASE_MS / 2);

    expect(renewed.status).toBe(200);
    expect(renewed.body.lockedUntil > held.reply.body.lease.lockedUntil).toBe(true);
    expect((await atOnce(orchestrator, body)).status).toBe(409);
  });

  test('is reclaimed by the next request, with a higher number; the first holder has lost', async () => {
    const body = about('pay.send');
    const first = await claim(orchestrator, body);
    await sleep(AFTER_THE_LEASE_MS);
    const second = await claim(orchestrator, body);

    expect(second.reply.body.lease.number).toBe(2);
    expect(second.decisionId).toBe(first.decisionId);
    expect((await first.complete(APPLIED)).body.code).toBe('lease-lost');
    expect((await first.renew()).body.code).toBe('lease-lost');
    expect((await first.fail('none')).body.code).toBe('lease-lost');
    expect((await second.complete(APPLIED)).status).toBe(200);
    expect(await database.count('SELECT count(*) FROM ledger_entry WHERE decision_id = $1', [first.decisionId])).toBe(
      1,
    );
  });

  test('may still be completed by its holder while nobody has taken it', async () => {
    const held = await claim(orchestrator, about('pay.send'));
    await sleep(AFTER_THE_LEASE_MS);

    expect((await held.complete(APPLIED)).status).toBe(200);
  });

  test('leaves the outcome unknown where the action says so; its holder may still complete it', async () => {
    const body = about('pay.blind');
    const held = await claim(orchestrator, body);
    await sleep(AFTER_THE_LEASE_MS);
    const next = await atOnce(orchestrator, body);

    expect(next.status).toBe(409);
    expect(next.body).toMatchObject({
      code: 'outcome-unknown',
      retryable: false,
      state: 'unknown',
      decisionId: held.decisionId,
    });
    expect((await held.complete(APPLIED)).status).toBe(200);
  });

  test('five times in a row makes the outcome unknown', async () => {
    const body = about('pay.send');
    const { decisionId } = await claim(orchestrator, body);
    for (let number = 2; number <= 6; number += 1) {
      await database.query(
        `UPDATE idempotency_record SET locked_until = now() - interval '1 second' WHERE decision_id = $1`,
        [decisionId],
      );
      expect((await claim(orchestrator, body)).reply.body.lease.number).toBe(number);
    }
    await database.query(
      `UPDATE idempotency_record SET locked_until = now() - interval '1 second' WHERE decision_id = $1`,
      [decisionId],
    );

    expect((await orchestrator.decide(body)).body).toMatchObject({ code: 'outcome-unknown', state: 'unknown' });
  });
});
