import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { dispositions, effectsAndEntries, violations } from '../support/audit.js';
import { Callers, isReplay, tally, type CallReply } from '../support/callers.js';
import { installGates, lockWaiters, shutGate, sleepers } from '../support/gates.js';
import { openHouse, type House } from '../support/house.js';
import { inputs } from '../support/index.js';
import { until } from '../support/rounds.js';

const TWINS = 20;
const OTHERS = 40;
const POOL_SIZE = 5;

let house: House;
let callers: Callers;
let slow: Callers;

beforeAll(async () => {
  house = await openHouse(1, { DATABASE_POOL_SIZE: String(POOL_SIZE) });
  await installGates(house.database);
  callers = new Callers();
  slow = new Callers();
});

afterAll(async () => {
  await callers?.stop();
  await slow?.stop();
  await house?.close();
});

const bodyOf = (id: string, action = 'note.add', changes = {}): unknown => ({
  inputs: inputs({ action, subject: { type: 'case', id }, ...changes }),
});

const codeOf = (reply: CallReply): unknown => JSON.parse(reply.text).code;

test.each([
  ['their key', 'note.add', (): unknown => ({}), (): string => 'same'],
  ['their key, which a handler holds', 'refund.create', (): unknown => ({}), (): string => 'same'],
  ['their content, under keys of their own', 'note.add', (): unknown => ({}), (n: number): string => `own-${n}`],
  [
    'their subject, with contents of their own',
    'case.close',
    (n: number): unknown => ({ params: { n } }),
    (n: number): string => `rival-${n}`,
  ],
])(
  'with a pool of 5, while 20 duplicates wait for %s, every other key is served within a second',
  async (what, action, changesOf, keyOf) => {
    const callOf = (n: number): ReturnType<House['call']> =>
      house.call(0, bodyOf(what, action, changesOf(n) as object), `${what.length}-${keyOf(n)}`, { prefer: 'wait=20' });
    const place = action === 'refund.create' ? 'handler' : 'commit';
    const gate = await shutGate(house.database, place, place === 'handler' ? what : (callOf(0).key ?? ''));
    const holder = slow.send([callOf(0)]);
    await gate.reached();
    const waiting = slow.send(Array.from({ length: TWINS }, (_, n) => callOf(n + 1)));
    await until('duplicates that wait', async () => (await lockWaiters(house.database)) > 0);

    const others = await callers.send(
      Array.from({ length: OTHERS }, (_, n) =>
        house.call(0, bodyOf(`${what}-other-${n}`), `other-${what.length}-${n}`),
      ),
      1,
    );
    const held = await sleepers(house.database);
    await gate.open();
    const [first] = await holder;
    const twins = await waiting;
    expect(held).toHaveLength(1);
    expect(tally(others)).toEqual({ 201: OTHERS });
    expect(Math.max(...others.map(({ latencyMs }) => latencyMs))).toBeLessThan(1_000);
    expect([first?.status, first && isReplay(first)]).toEqual([201, false]);
    if (action === 'case.close') {
      expect(tally(twins)).toEqual({ 409: TWINS });
      expect(new Set(twins.map(codeOf))).toEqual(new Set(['duplicate-subject']));
    } else {
      expect(tally(twins)).toEqual({ '201 again': TWINS });
      expect(new Set(twins.map(({ text }) => text))).toEqual(new Set([first?.text]));
    }
    expect(await violations(house.database)).toEqual([]);
  },
);

test.each([
  ['the two seconds of the contract', {}, 2_000],
  ['wait=0', { prefer: 'wait=0' }, 0],
  ['wait=1', { prefer: 'wait=1' }, 1_000],
  ['wait=4', { prefer: 'wait=4' }, 4_000],
])(
  'a twin that has waited in vain for %s is told to come back, and that is on record',
  async (what, headers, waitMs) => {
    const key = `vain-${waitMs}`;
    const call = house.call(0, bodyOf(what), key, { ...headers, 'x-request-id': `${key}-twin` });
    const gate = await shutGate(house.database, 'commit', key);
    const holder = slow.send([house.call(0, bodyOf(what), key)]);
    await gate.reached();
    const [twin] = await callers.send([call]);

    expect(twin?.status).toBe(409);
    expect(twin?.headers['content-type']).toContain('application/problem+json');
    expect(Number(twin?.headers['retry-after'])).toBeGreaterThan(0);
    expect(twin?.headers['idempotency-expires']).toBeUndefined();
    expect(JSON.parse(twin?.text ?? '')).toMatchObject({
      code: 'in-flight',
      retryable: true,
      requestId: `${key}-twin`,
    });
    expect(twin?.latencyMs).toBeGreaterThanOrEqual(waitMs);
    expect(twin?.latencyMs).toBeLessThan(waitMs + 1_000);
    expect(await dispositions(house.database, key)).toEqual({ in_flight: 1 });
    const [attempt] = await house.database.query<{ won: boolean; problem: string; latency_ms: number }>(
      'SELECT won, problem, request_id FROM attempt WHERE idem_key = $1',
      [key],
    );
    expect(attempt).toEqual({ won: false, problem: 'in-flight', request_id: `${key}-twin` });

    await gate.open();
    const [first] = await holder;
    const [again] = await callers.send([call]);
    expect(first?.status).toBe(201);
    expect([again?.status, again?.text, again && isReplay(again)]).toEqual([201, first?.text, true]);
    expect(await effectsAndEntries(house.database, key)).toEqual({ W: 1, L: 1 });
    expect(await dispositions(house.database, key)).toEqual({ in_flight: 1, created: 1, replayed: 1 });
  },
);

test('when whoever holds the key rolls back, one of 20 waiting twins runs and the others replay it', async () => {
  const key = 'rolled-back';
  const stranger = new pg.Client({ connectionString: house.database.url });
  await stranger.connect();
  await stranger.query('BEGIN');
  await stranger.query(
    `INSERT INTO idempotency_record (tenant_id, idem_key, key_source, fingerprint, decision_id, status, created_at)
     VALUES ('acme', $1, 'client', sha256('another'), gen_random_uuid(), 'in_flight', now())`,
    [key],
  );
  const waiting = callers.send(
    Array.from({ length: TWINS }, () => house.call(0, bodyOf(key), key, { prefer: 'wait=20' })),
  );
  await until('twins that wait', async () => (await lockWaiters(house.database)) > 0);
  await stranger.query('ROLLBACK');
  await stranger.end();

  const replies = await waiting;
  expect(tally(replies)).toEqual({ 201: 1, '201 again': TWINS - 1 });
  expect(new Set(replies.map(({ text }) => text)).size).toBe(1);
  expect(await effectsAndEntries(house.database, key)).toEqual({ W: 1, L: 1 });
});

test('when the connection of whoever holds the key is cut, it is told 503, one waiting twin runs, and its retry replays', async () => {
  const id = 'cut';
  const call = house.call(0, bodyOf(id, 'refund.create'), id, { prefer: 'wait=20' });
  const gate = await shutGate(house.database, 'handler', id);
  const holder = slow.send([call]);
  await gate.reached();
  const [pid] = await sleepers(house.database);
  const waiting = callers.send(Array.from({ length: TWINS }, () => call));
  await until('twins that wait', async () => (await lockWaiters(house.database)) > 0);
  await house.database.query('SELECT pg_terminate_backend($1)', [pid]);
  const [first] = await holder;
  await gate.open();

  expect([first?.status, codeOf(first ?? ({ text: '{}' } as CallReply))]).toEqual([503, 'unavailable']);
  const twins = await waiting;
  expect(tally(twins)).toEqual({ 201: 1, '201 again': TWINS - 1 });
  const [retried] = await slow.send([call]);
  expect([retried?.text, retried && isReplay(retried)]).toEqual([twins[0]?.text, true]);
  expect(await effectsAndEntries(house.database, id)).toEqual({ W: 1, L: 1 });
  expect(await violations(house.database)).toEqual([]);
});

test('a row that the handler needs and somebody else has locked is waited for; nothing of the tries in between is left', async () => {
  const id = 'locked-case';
  expect((await callers.send([house.call(0, bodyOf(id, 'refund.create'), `${id}-1`)]))[0]?.status).toBe(201);
  const stranger = new pg.Client({ connectionString: house.database.url });
  await stranger.connect();
  await stranger.query('BEGIN');
  await stranger.query('SELECT FROM refund_case WHERE subject_id = $1 FOR UPDATE', [id]);
  const second = (prefer: string): ReturnType<House['call']> =>
    house.call(0, bodyOf(id, 'refund.create', { params: { amount: '2.00' } }), `${id}-2`, { prefer });

  const [told] = await callers.send([second('wait=1')]);
  expect([told?.status, codeOf(told ?? ({ text: '{}' } as CallReply))]).toEqual([409, 'in-flight']);
  expect(await effectsAndEntries(house.database, `${id}-2`)).toEqual({ W: 0, L: 0 });
  expect(await house.database.query('SELECT FROM decision_record WHERE idem_key = $1', [`${id}-2`])).toHaveLength(0);

  const waiting = callers.send(Array.from({ length: 8 }, () => second('wait=20')));
  await until('a handler that waits', async () => (await lockWaiters(house.database)) > 0);
  await stranger.query('COMMIT');
  await stranger.end();
  expect(tally(await waiting)).toEqual({ 201: 1, '201 again': 7 });
  expect(await effectsAndEntries(house.database, `${id}-2`)).toEqual({ W: 1, L: 1 });
  expect(await violations(house.database)).toEqual([]);
});
