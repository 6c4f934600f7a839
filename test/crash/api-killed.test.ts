import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { effectsAndEntries, violations } from '../support/audit.js';
import { Callers, isReplay, tally, type Call, type CallReply } from '../support/callers.js';
import { installGates, shutGate, type Place } from '../support/gates.js';
import { openHouse, type House } from '../support/house.js';
import { inputs, startService, type Service } from '../support/index.js';
import { until } from '../support/rounds.js';
import { Tap } from '../support/tap.js';

let house: House;
let callers: Callers;
/** The service that is killed; the house's own lives on beside it and must not be hindered. */
let victim: Service;
/** The service that is started after the kill, where a test wants one. */
let next: Service | null;
let tap: Tap;

beforeAll(async () => {
  house = await openHouse();
  await installGates(house.database);
  callers = new Callers();
});

afterAll(async () => {
  await callers?.stop();
  await house?.close();
});

beforeEach(async () => {
  tap = await Tap.open(house.database.url);
  victim = await startService({ DATABASE_URL: tap.url });
  next = null;
});

afterEach(async () => {
  await victim?.kill();
  await next?.stop();
  await tap?.close();
});

const bodyOf = (id: string, action: string): unknown => ({
  inputs: inputs({ action, subject: { type: 'case', id }, params: { amount: '3.00', reportingPeriod: '2026-W49' } }),
});

const callOf = (url: string, id: string, action: string): Call => ({ ...house.call(0, bodyOf(id, action), id), url });

async function one(url: string, id: string, action: string): Promise<CallReply> {
  const [reply] = await callers.send([callOf(url, id, action)]);
  if (reply === undefined) throw new Error('There is no reply');
  return reply;
}

/** The service that nobody killed. */
const standing = (): string => house.services[0]?.url ?? '';

/** Rows that any of the rooms has of a key or its subject; both are named alike here. */
const traces = (id: string): Promise<number> =>
  house.database.count(
    `SELECT (SELECT count(*) FROM idempotency_record WHERE idem_key = $1) + (SELECT count(*) FROM decision_record WHERE idem_key = $1)
          + (SELECT count(*) FROM ledger_entry WHERE idem_key = $1) + (SELECT count(*) FROM attempt WHERE idem_key = $1)
          + (SELECT count(*) FROM effect WHERE subject_id = $1) + (SELECT count(*) FROM refund WHERE subject_id = $1)
          + (SELECT count(*) FROM refund_case WHERE subject_id = $1) + (SELECT count(*) FROM sar_filing WHERE subject_id = $1)`,
    [id],
  );

test.each<[string, Place, string]>([
  ['after the claim', 'claim', 'refund.create'],
  ['after the claim, of another handler', 'claim', 'sar.file'],
  ['inside the handler', 'handler', 'refund.create'],
])('killed %s: nothing is left, the retry runs, W = L = 1', async (what, place, action) => {
  const id = `killed ${what}`.replaceAll(/\W+/g, '-');
  const gate = await shutGate(house.database, place, id);
  const lost = one(victim.url, id, action);
  await gate.reached();
  await victim.kill();
  expect((await lost).status).toBe(0);
  await gate.open();
  // The house's own service keeps its connections; those of the victim end when they notice.
  await until('the end of the transaction', async () => {
    const rows = await house.database.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'decision-ledger' AND state <> 'idle'`,
    );
    return rows.length === 0;
  });
  expect(await traces(id)).toBe(0);

  const retried = await one(standing(), id, action);
  expect([retried.status, isReplay(retried)]).toEqual([201, false]);
  expect(await effectsAndEntries(house.database, id)).toEqual({ W: 1, L: 1 });
  const again = await one(standing(), id, action);
  expect([again.status, again.text, isReplay(again)]).toEqual([201, retried.text, true]);
  expect(await violations(house.database)).toEqual([]);
});

test('killed inside the handler while twins wait at another service: one of them runs, the others replay it', async () => {
  const id = 'killed-with-twins';
  const gate = await shutGate(house.database, 'handler', id);
  const lost = one(victim.url, id, 'refund.create');
  await gate.reached();
  const twin = { ...callOf(standing(), id, 'refund.create'), headers: { prefer: 'wait=20' } };
  const waiting = callers.send(Array.from({ length: 16 }, () => twin));
  await victim.kill();
  await gate.open();
  expect((await lost).status).toBe(0);

  const replies = await waiting;
  expect(tally(replies)).toEqual({ 201: 1, '201 again': 15 });
  expect(new Set(replies.map(({ text }) => text)).size).toBe(1);
  expect(await effectsAndEntries(house.database, id)).toEqual({ W: 1, L: 1 });
  expect(await violations(house.database)).toEqual([]);
});

test.each(['note.add', 'refund.create'])(
  'killed in COMMIT of %s: the retry replays if it was committed, else runs; W = L = 1',
  async (action) => {
    const id = `killed-in-commit-${action}`;
    const gate = await shutGate(house.database, 'commit', id);
    const lost = one(victim.url, id, action);
    await gate.reached();
    await victim.kill();
    expect((await lost).status).toBe(0);
    expect(await effectsAndEntries(house.database, id)).toEqual({ W: 0, L: 0 });
    await gate.open();

    const retried = await one(standing(), id, action);
    expect(retried.status).toBe(201);
    expect(await effectsAndEntries(house.database, id)).toEqual({ W: 1, L: 1 });
    const again = await one(standing(), id, action);
    expect([again.text, isReplay(again)]).toEqual([retried.text, true]);
    expect(await violations(house.database)).toEqual([]);
  },
);

test.each([
  ['note.add', ''],
  ['refund.create', 'COMMIT'],
  ['sar.file', 'COMMIT'],
])(
  'killed between COMMIT and the reply of %s: the retry is a replay of the stored bytes, W = L = 1',
  async (action, message) => {
    const id = `killed-after-commit-${action}`;
    const held = tap.next('hold-answer', id, message);
    const lost = one(victim.url, id, action);
    await held;
    // The service has not learnt of it, and the database has it.
    expect(await effectsAndEntries(house.database, id)).toEqual({ W: 1, L: 1 });
    await victim.kill();
    expect((await lost).status).toBe(0);

    next = await startService({ DATABASE_URL: house.database.url });
    const retried = await one(next.url, id, action);
    const [stored] = await house.database.query<{ response_body: string }>(
      'SELECT response_body FROM idempotency_record WHERE idem_key = $1',
      [id],
    );
    expect([retried.status, isReplay(retried), retried.text]).toEqual([201, true, stored?.response_body]);
    expect(await effectsAndEntries(house.database, id)).toEqual({ W: 1, L: 1 });
    expect(await violations(house.database)).toEqual([]);
  },
);

test('killed when the reply is on its way to the caller: the retry gives the very bytes that were lost', async () => {
  const id = 'killed-with-reply';
  const wire = await Tap.open(victim.url);
  try {
    const held = wire.next('hold-answer', id);
    const lost = one(wire.url, id, 'note.add');
    await held;
    await victim.kill();
    expect((await lost).status).toBe(0);
  } finally {
    await wire.close();
  }
  const retried = await one(standing(), id, 'note.add');
  expect([retried.status, isReplay(retried)]).toEqual([201, true]);
  expect(await effectsAndEntries(house.database, id)).toEqual({ W: 1, L: 1 });
});

test('a refusal survives a kill as it was: the same 409 with the same bytes', async () => {
  const first = await one(victim.url, 'sar-winner', 'sar.file');
  expect(first.status).toBe(201);
  const rival = { ...callOf(victim.url, 'sar-winner', 'sar.file'), key: 'sar-rival' };
  const other = {
    ...rival,
    body: { inputs: { ...(rival.body as { inputs: object }).inputs, policyVersion: 'pol-8' } },
  };
  const held = tap.next('hold-answer', 'sar-rival', 'COMMIT');
  const lost = callers.send([other]);
  await held;
  await victim.kill();
  expect(tally(await lost)).not.toHaveProperty('409');

  next = await startService({ DATABASE_URL: house.database.url });
  const replies = await callers.send(Array.from({ length: 3 }, () => ({ ...other, url: next?.url ?? '' })));
  expect(tally(replies)).toEqual({ '409 again': 3 });
  expect(new Set(replies.map(({ text }) => text)).size).toBe(1);
  expect(JSON.parse(replies[0]?.text ?? '')).toMatchObject({
    code: 'duplicate-subject',
    winner: { key: 'sar-winner' },
  });
  expect(await violations(house.database)).toEqual([]);
});
