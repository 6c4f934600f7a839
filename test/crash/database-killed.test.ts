import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { Callers, type Call } from '../support/callers.js';
import { EmbeddedHouse } from '../support/embedded.js';
import { inputs, type Service } from '../support/index.js';
import { expectAllStands, kindsOf } from '../support/load.js';
import { rounds, seeded, until } from '../support/rounds.js';

const KILLS = rounds(20);
const KEYS_A_KILL = 60;
const LONGEST_PAUSE_MS = 1_000;
/** The service gives a server up that is lost again and again within seconds; a calm after some kills keeps it patient. */
const KILLS_IN_A_ROW = 4;
const CALM_MS = 11_000;

const embedded = new EmbeddedHouse();
let service: Service;
let callers: Callers;
let token: string;

beforeAll(async () => {
  service = await embedded.start();
  token = embedded.tokens().orchestrator;
  callers = new Callers();
});

afterAll(async () => {
  await callers?.stop();
  await service?.stop();
  embedded.remove();
});

function callOf(n: number): Call {
  const id = `k-${n}`;
  const changes = {
    action: n % 2 === 0 ? 'refund.create' : 'sar.file',
    subject: { type: 'case', id: `C-${n >> 3}` },
    params: { n, amount: '10.00', orderTotal: '25.00', reportingPeriod: '2026-11-30' },
  };
  return { url: service.url, token, key: id, id, body: { inputs: inputs(changes) } };
}

const callsOf = (kill: number): Call[] =>
  Array.from({ length: 2 * KEYS_A_KILL }, (_, n) => callOf(kill * KEYS_A_KILL + n));

test('the database is killed 20 times under load: every outcome that was told stands, no key is blocked, W = L for every key', async () => {
  const draw = seeded(20);
  await callers.startLoad(callsOf(0), 4, 20);
  for (let kill = 0; kill < KILLS; kill += 1) {
    await callers.replaceLoad(callsOf(kill));
    // Not waits for anything: the instant of the kill is what is drawn.
    await sleep(kill % KILLS_IN_A_ROW === 0 && kill > 0 ? CALM_MS : 0);
    await sleep(draw() * LONGEST_PAUSE_MS);
    const postmaster = embedded.postmaster();
    if (postmaster === null) throw new Error('No server is up');
    process.kill(postmaster, 'SIGKILL');
    await until(
      'the server is back',
      async () => {
        const isReady = (await fetch(`${service.url}/readyz`)).ok;
        return (
          isReady && embedded.postmaster() !== postmaster && (await embedded.database.query('SELECT 1')).length === 1
        );
      },
      60_000,
    );
  }
  const said = await callers.stopLoad();

  const kinds = kindsOf(said);
  expect(Object.keys(kinds).filter((kind) => !['201', '409', '503 unavailable'].includes(kind))).toEqual([]);
  expect(kinds['503 unavailable'] ?? 0).toBeGreaterThan(0);
  const calls = Array.from({ length: (KILLS + 1) * KEYS_A_KILL }, (_, n) => callOf(n));
  await expectAllStands(embedded.database, callers, calls, said);
});

test('the database and the service are killed together: the next start has every outcome that was told', async () => {
  const first = 1_000_000;
  const calls = Array.from({ length: KEYS_A_KILL }, (_, n) => callOf(first + n));
  await callers.startLoad(calls, 4, 21);
  await until('some outcomes', async () => {
    const rows = await embedded.database.query("SELECT FROM ledger_entry WHERE idem_key LIKE 'k-1000%'");
    return rows.length >= KEYS_A_KILL / 4;
  });
  const postmaster = embedded.postmaster();
  if (postmaster === null) throw new Error('No server is up');
  await service.kill();
  process.kill(postmaster, 'SIGKILL');
  const said = await callers.stopLoad();
  service = await embedded.start();

  expect(kindsOf(said)['201']).toBeGreaterThan(0);
  const retry = calls.map((_, n) => callOf(first + n));
  await expectAllStands(embedded.database, callers, retry, said);
});
