import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { violations } from '../support/audit.js';
import { Callers, isReplay, type Call } from '../support/callers.js';
import { EmbeddedHouse } from '../support/embedded.js';
import { installGates, shutGate } from '../support/gates.js';
import { openHouse } from '../support/house.js';
import { inputs, startService, type Service } from '../support/index.js';
import { expectAllStands, kindsOf } from '../support/load.js';
import { until } from '../support/rounds.js';

const KEYS = 400;

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
    action: 'refund.create',
    subject: { type: 'case', id: `C-${n >> 2}` },
    params: { n, amount: '1.00' },
  };
  return { url: service.url, token, key: id, id, body: { inputs: inputs(changes) } };
}

test('SIGTERM under load: exit code 0, the PostgreSQL of the service is gone, and after the restart every answer stands', async () => {
  const calls = Array.from({ length: KEYS }, (_, n) => callOf(n));
  await callers.startLoad(calls, 4, 15);
  await until('outcomes', async () => {
    const rows = await embedded.database.query('SELECT FROM ledger_entry');
    return rows.length >= KEYS / 10;
  });
  const postmaster = embedded.postmaster();
  expect(await service.stop()).toBe(0);
  const said = await callers.stopLoad();

  expect(postmaster).not.toBeNull();
  expect(() => process.kill(postmaster ?? 0, 0)).toThrow('ESRCH');
  expect(embedded.postmaster()).toBeNull();
  expect(service.output()).not.toMatch(/"level":(50|60)/);
  const kinds = Object.keys(kindsOf(said));
  // Who comes while it stops is told so, or finds the connection closed; nobody is told anything else.
  expect(kinds.filter((kind) => !['201', '503 unavailable', 'ECONNRESET', 'ECONNREFUSED'].includes(kind))).toEqual([]);

  service = await embedded.start();
  await expectAllStands(
    embedded.database,
    callers,
    Array.from({ length: KEYS }, (_, n) => callOf(n)),
    said,
  );
});

test('SIGTERM while requests are under way: each is finished and answered before the process ends', async () => {
  const house = await openHouse();
  const own = new Callers(1);
  try {
    await installGates(house.database);
    const stopped = await startService({ DATABASE_URL: house.database.url });
    const bodyOf = (n: number): unknown => ({
      inputs: inputs({
        action: n % 2 === 0 ? 'note.add' : 'refund.create',
        subject: { type: 'case', id: `S-${n}` },
        params: { n },
      }),
    });
    const calls = Array.from({ length: 6 }, (_, n) => ({ ...house.call(0, bodyOf(n), `s-${n}`), url: stopped.url }));
    const gates = await Promise.all(calls.map(({ key }) => shutGate(house.database, 'commit', key ?? '')));
    const answers = own.send(calls);
    await gates[0]?.reached(calls.length);
    const exit = stopped.stop();
    await until('the end of listening', () =>
      fetch(`${stopped.url}/healthz`).then(
        () => false,
        () => true,
      ),
    );
    await Promise.all(gates.map((gate) => gate.open()));

    const replies = await answers;
    expect(replies.map((reply) => [reply.status, isReplay(reply)])).toEqual(calls.map(() => [201, false]));
    expect(await exit).toBe(0);
    const again = await own.send(calls.map((call) => ({ ...call, url: house.services[0]?.url ?? '' })));
    expect(again.map(({ text }) => text)).toEqual(replies.map(({ text }) => text));
    expect(again.every(isReplay)).toBe(true);
    expect(await violations(house.database)).toEqual([]);
  } finally {
    await own.stop();
    await house.close();
  }
});

test('a second SIGTERM, and one at an idle service, end in exit code 0 too', async () => {
  service.signal('SIGTERM');
  service.signal('SIGTERM');
  expect(await service.stop()).toBe(0);
  expect(embedded.postmaster()).toBeNull();
});
