import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { Callers, type Call } from '../support/callers.js';
import { openHouse, type House } from '../support/house.js';
import { inputs, startService, type Service } from '../support/index.js';
import { expectAllStands, kindsOf } from '../support/load.js';
import { rounds, seeded, until } from '../support/rounds.js';

const KILLS = rounds(200);
const KEYS_A_KILL = 30;
const LONGEST_PAUSE_MS = 150;
const ACTIONS = ['note.add', 'refund.create', 'note.repeat', 'sar.file'];

let house: House;
let callers: Callers;
const services: Service[] = [];

beforeAll(async () => {
  house = await openHouse();
  callers = new Callers();
});

afterAll(async () => {
  await callers?.stop();
  await Promise.all(services.map((service) => service.kill()));
  await house?.close();
});

function callOf(n: number, url: string): Call {
  const id = `k-${n}`;
  const changes = {
    action: ACTIONS[n % ACTIONS.length],
    // Eight keys a case: every second report finds its place taken, and refunds stop at the order's total.
    subject: { type: 'case', id: `C-${n >> 3}` },
    params: { n, amount: '10.00', orderTotal: '15.00', reportingPeriod: '2026-11-30' },
  };
  return { ...house.call(0, { inputs: inputs(changes) }, id), url, id };
}

/** The keys of this kill and of the one before it: some are known already, most are new. */
function callsOf(kill: number, url: string): Call[] {
  const first = Math.max(0, kill - 1) * KEYS_A_KILL;
  return Array.from({ length: 2 * KEYS_A_KILL }, (_, n) => callOf(first + n, url));
}

test('killed at 200 random instants under load: every outcome that was told stands, no key is blocked, W = L for every key', async () => {
  const draw = seeded(200);
  const start = async (): Promise<Service> => {
    const service = await startService({ DATABASE_URL: house.database.url });
    services.push(service);
    return service;
  };
  const entries = (): Promise<number> => house.database.count('SELECT count(*) FROM ledger_entry');
  await callers.startLoad([], 4, 64);
  for (let kill = 0; kill < KILLS; kill += 1) {
    const victim = await start();
    await callers.replaceLoad(callsOf(kill, victim.url));
    const before = await entries();
    await until('outcomes by this service', async () => (await entries()) > before);
    // Not a wait for anything: the instant of the kill is what is drawn.
    await sleep(draw() * LONGEST_PAUSE_MS);
    await victim.kill();
    // A start takes all of a small machine; it goes faster when nobody knocks meanwhile.
    await callers.replaceLoad([]);
  }
  const said = await callers.stopLoad();
  const { url } = await start();

  const kinds = kindsOf(said);
  expect(Object.keys(kinds).filter((kind) => /^(5|4(?!09))/.test(kind))).toEqual([]);
  expect(kinds['ECONNRESET'] ?? 0).toBeGreaterThan(0);
  const calls = Array.from({ length: (KILLS + 1) * KEYS_A_KILL }, (_, n) => callOf(n, url));
  await expectAllStands(house.database, callers, calls, said);
});
