import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { effectsAndEntries } from '../support/audit.js';
import { Callers, tally, type CallReply } from '../support/callers.js';
import { openHouse, type House } from '../support/house.js';
import { clientsOf, inputs, type Client } from '../support/index.js';
import { claim } from '../support/leases.js';
import { until } from '../support/rounds.js';
import { putActions } from '../support/stage.js';

const TWINS = 20;
const OTHERS = 40;
const POOL_SIZE = 5;
const SAMPLES = 20;

let house: House;
let callers: Callers;
let slow: Callers;
let orchestrator: Client;

beforeAll(async () => {
  // The worker, which borrows from the same pool, is out of it: what is measured is what the twins leave of it.
  house = await openHouse(1, { DATABASE_POOL_SIZE: String(POOL_SIZE), WORKER: 'off' });
  callers = new Callers();
  slow = new Callers();
  const clients = clientsOf(house.services[0]?.url ?? '', house.tokens);
  ({ orchestrator } = clients);
  await putActions(clients.admin, {
    'pay.send': { execution: 'caller' },
    'pay.once': { execution: 'caller', uniqueness: 'subject', sameContent: 'allow' },
  });
});

afterAll(async () => {
  await callers?.stop();
  await slow?.stop();
  await house?.close();
});

const bodyOf = (id: string, action = 'note.add', changes = {}): unknown => ({
  inputs: inputs({ action, subject: { type: 'case', id }, ...changes }),
});
const codeOf = ({ text }: CallReply): unknown => JSON.parse(text).code;

/** How many connections of the service have asked for a lease since a time. */
const askingSince = (at: string): Promise<number> =>
  house.database.count(
    `SELECT count(*) FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'decision-ledger' AND query LIKE '%open_lease%' AND query_start > $1`,
    [at],
  );

/** How many connections of the service stand in the middle of a transaction, or wait for a lock. */
const heldConnections = (): Promise<number> =>
  house.database.count(
    `SELECT count(*) FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'decision-ledger'
        AND (state LIKE 'idle in transaction%' OR wait_event_type = 'Lock' AND clock_timestamp() - state_change > interval '1 second')`,
  );

test.each([
  ['their key', 'pay.send', (): string => 'key', (): object => ({})],
  ['their content, under keys of their own', 'pay.send', (n: number): string => `own-${n}`, (): object => ({})],
  [
    'their subject, with contents of their own',
    'pay.once',
    (n: number): string => `rival-${n}`,
    (n: number): object => ({ params: { n } }),
  ],
])(
  'with a pool of 5, while 20 wait for a slow holder of %s, none holds a connection, and every other key is served within a second',
  async (what, action, keyOf, changesOf) => {
    const body = (n: number): unknown => bodyOf(what, action, changesOf(n));
    const held = await claim(orchestrator, body(0), keyOf(0));
    const [{ at } = { at: '' }] = await house.database.query<{ at: string }>('SELECT clock_timestamp()::text AS at');
    const waiting = slow.send(
      Array.from({ length: TWINS }, (_, n) => house.call(0, body(n + 1), keyOf(n + 1), { prefer: 'wait=25' })),
    );
    await until('twins that wait', async () => (await askingSince(at)) > 1);

    const others = await callers.send(
      Array.from({ length: OTHERS }, (_, n) => house.call(0, bodyOf(`${what} ${n}`), `other-${keyOf(0)}-${n}`)),
      1,
    );
    expect(tally(others)).toEqual({ 201: OTHERS });
    expect(Math.max(...others.map(({ latencyMs }) => latencyMs))).toBeLessThan(1_000);
    for (let sample = 0; sample < SAMPLES; sample += 1) expect(await heldConnections()).toBe(0);

    const done = await held.complete({ status: 'applied', result: {} });
    const twins = await waiting;
    expect(done.status).toBe(200);
    if (action === 'pay.once') {
      expect(tally(twins)).toEqual({ 409: TWINS });
      expect(new Set(twins.map(codeOf))).toEqual(new Set(['duplicate-subject']));
    } else {
      expect(tally(twins)).toEqual({ '201 again': TWINS });
      expect(new Set(twins.map(({ text }) => text))).toEqual(new Set([done.text]));
    }
    expect(await effectsAndEntries(house.database, keyOf(0))).toEqual({ W: 1, L: 1 });
  },
);

test('20 that wait for a lease which runs out: one of them reclaims it in that very request, and the others wait on for that one', async () => {
  const key = 'runs-out';
  const { decisionId } = await claim(orchestrator, bodyOf(key, 'pay.send'), key);
  const [{ at } = { at: '' }] = await house.database.query<{ at: string }>('SELECT clock_timestamp()::text AS at');
  const waiting = slow.send(
    Array.from({ length: TWINS }, () => house.call(0, bodyOf(key, 'pay.send'), key, { prefer: 'wait=4' })),
  );
  await until('twins that wait', async () => (await askingSince(at)) > 1);
  await house.database.query('UPDATE idempotency_record SET locked_until = clock_timestamp() WHERE decision_id = $1', [
    decisionId,
  ]);
  const twins = await waiting;
  expect(tally(twins)).toEqual({ 202: 1, 409: TWINS - 1 });
  expect(JSON.parse(twins.find(({ status }) => status === 202)?.text ?? '{}')).toMatchObject({
    decisionId,
    lease: { number: 2 },
  });
  for (const { status, headers, text } of twins) {
    if (status === 202) continue;
    expect(JSON.parse(text)).toMatchObject({ code: 'in-flight', decisionId, state: 'in_flight' });
    // What is left of a lease of 30 seconds.
    expect(Number(headers['retry-after'])).toBeGreaterThan(20);
    expect(Number(headers['retry-after'])).toBeLessThanOrEqual(30);
  }
});
