import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { effectsAndEntries, violations } from '../support/audit.js';
import { Callers, isReplay, tally, type Call, type CallReply } from '../support/callers.js';
import { installGates, shutGate, sleepers } from '../support/gates.js';
import { openHouse, type House } from '../support/house.js';
import { inputs, startService, type Service } from '../support/index.js';
import { expectAllStands, kindsOf } from '../support/load.js';
import { rounds, seeded, until } from '../support/rounds.js';
import { Tap } from '../support/tap.js';

let house: House;
let callers: Callers;
/** The service whose connections to the database are lost. */
let service: Service;
let tap: Tap;

beforeAll(async () => {
  house = await openHouse();
  await installGates(house.database);
  callers = new Callers();
  tap = await Tap.open(house.database.url);
  service = await startService({ DATABASE_URL: tap.url });
});

afterAll(async () => {
  await callers?.stop();
  await service?.kill();
  await tap?.close();
  await house?.close();
});

const bodyOf = (id: string, action: string): unknown => ({
  inputs: inputs({ action, subject: { type: 'case', id }, params: { amount: '3.00' } }),
});

const callOf = (id: string, action: string): Call => ({ ...house.call(0, bodyOf(id, action), id), url: service.url });

async function one(call: Call): Promise<CallReply> {
  const [reply] = await callers.send([call]);
  if (reply === undefined) throw new Error('There is no reply');
  return reply;
}

test.each([
  // A declarative decision is one message; its last text is none at all.
  ['note.add', ''],
  ['refund.create', 'COMMIT'],
])(
  'the connection breaks after the COMMIT of %s and before its answer: 503, and the retry replays',
  async (action, message) => {
    for (let round = 0; round < rounds(50); round += 1) {
      const id = `broken-after-${action}-${round}`;
      const broken = tap.next('break-after', id, message);
      const first = await one(callOf(id, action));
      await broken;
      expect(first.status).toBe(503);
      expect(JSON.parse(first.text)).toMatchObject({ code: 'unavailable', retryable: true });
      expect(Number(first.headers['retry-after'])).toBeGreaterThan(0);
      expect(await effectsAndEntries(house.database, id)).toEqual({ W: 1, L: 1 });

      const retried = await one(callOf(id, action));
      expect([retried.status, isReplay(retried)]).toEqual([201, true]);
      expect(await effectsAndEntries(house.database, id)).toEqual({ W: 1, L: 1 });
    }
    expect(await violations(house.database)).toEqual([]);
  },
);

test.each([
  ['note.add', ''],
  ['refund.create', 'COMMIT'],
])(
  'the connection breaks before the COMMIT of %s arrives: 503, nothing is left, and the retry runs once',
  async (action, message) => {
    for (let round = 0; round < rounds(50); round += 1) {
      const id = `broken-before-${action}-${round}`;
      const broken = tap.next('break-before', id, message);
      const first = await one(callOf(id, action));
      await broken;
      expect([first.status, JSON.parse(first.text).code]).toEqual([503, 'unavailable']);

      const retried = await one(callOf(id, action));
      expect([retried.status, isReplay(retried)]).toEqual([201, false]);
      expect(await effectsAndEntries(house.database, id)).toEqual({ W: 1, L: 1 });
    }
    expect(await violations(house.database)).toEqual([]);
  },
);

test('the server ends the connection in COMMIT itself: 503, and the retry finds what became of it; W = L = 1', async () => {
  for (const action of ['note.add', 'refund.create']) {
    const id = `ended-in-commit-${action}`;
    const gate = await shutGate(house.database, 'commit', id);
    const holder = callers.send([callOf(id, action)]);
    await gate.reached();
    for (const pid of await sleepers(house.database))
      await house.database.query('SELECT pg_terminate_backend($1)', [pid]);
    expect(tally(await holder)).toEqual({ 503: 1 });
    await gate.open();
    expect((await one(callOf(id, action))).status).toBe(201);
    expect(await effectsAndEntries(house.database, id)).toEqual({ W: 1, L: 1 });
  }
  expect(await violations(house.database)).toEqual([]);
});

test('connections ended at random under load: every answer stands, every retry gives it, W = L = 1', async () => {
  const draw = seeded(57);
  const calls = Array.from({ length: 200 }, (_, n): Call => {
    const id = `random-${n}`;
    return { ...callOf(id, ['note.add', 'refund.create', 'note.repeat'][n % 3] ?? ''), id };
  });
  await callers.startLoad(calls.slice(0, 1), 4, 5_700);
  for (let round = 0; round < rounds(200); round += 1) {
    // New keys come in as the old ones are known, so that first calls are under way at every instant.
    await callers.replaceLoad(calls.slice(0, Math.ceil((calls.length * (round + 1)) / rounds(200))));
    const ended = await until('a busy connection', async () => {
      const pids = await house.database.query<{ pid: number }>(
        `SELECT pid FROM pg_stat_activity
          WHERE datname = current_database() AND application_name = 'decision-ledger' AND state <> 'idle' ORDER BY pid`,
      );
      const victim = pids[Math.floor(draw() * pids.length)];
      return victim && (await house.database.query('SELECT pg_terminate_backend($1)', [victim.pid]));
    });
    expect(ended).toHaveLength(1);
  }
  const said = await callers.stopLoad();

  expect(Object.keys(kindsOf(said)).filter((kind) => kind !== '201' && kind !== '503 unavailable')).toEqual([]);
  await expectAllStands(house.database, callers, calls, said);
});

test.each(['note.add', 'refund.create'])(
  'a caller that gives up in mid-request of %s does not block its key',
  async (action) => {
    const id = `given-up-${action}`;
    const gate = await shutGate(house.database, 'commit', id);
    const leaving = new AbortController();
    const gone = fetch(`${service.url}/v1/decisions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${house.tokens.orchestrator}`,
        'content-type': 'application/json',
        'idempotency-key': id,
      },
      body: JSON.stringify(bodyOf(id, action)),
      signal: leaving.signal,
    }).then(
      ({ status }) => status,
      () => 'gave up',
    );
    await gate.reached();
    leaving.abort();
    expect(await gone).toBe('gave up');
    const retry = one({ ...callOf(id, action), headers: { prefer: 'wait=20' } });
    await gate.open();

    const retried = await retry;
    expect(retried.status).toBe(201);
    expect((await one(callOf(id, action))).text).toBe(retried.text);
    expect(await effectsAndEntries(house.database, id)).toEqual({ W: 1, L: 1 });
    expect(await violations(house.database)).toEqual([]);
  },
);

test('a body that stops half-way holds no key: the whole request, sent meanwhile, runs', async () => {
  const id = 'half-a-body';
  const { connect } = await import('node:net');
  const { hostname, port } = new URL(service.url);
  const body = JSON.stringify(bodyOf(id, 'note.add'));
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  socket.write(
    `POST /v1/decisions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${house.tokens.orchestrator}\r\ncontent-type: application/json\r\n` +
      `idempotency-key: ${id}\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, body.length / 2)}`,
  );
  const whole = await one(callOf(id, 'note.add'));
  socket.destroy();
  expect([whole.status, isReplay(whole)]).toEqual([201, false]);
  expect(await effectsAndEntries(house.database, id)).toEqual({ W: 1, L: 1 });
});
