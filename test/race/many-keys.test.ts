import { afterEach, expect, test } from '@jest/globals';
import { violations } from '../support/audit.js';
import { Callers, isReplay, tally } from '../support/callers.js';
import { openHouse, type House } from '../support/house.js';
import { inputs } from '../support/index.js';
import { rounds, seeded } from '../support/rounds.js';

const CALLS_A_KEY = 20;
const ACTIONS = ['note.add', 'note.add', 'note.repeat', 'refund.create'];

let house: House;
let callers: Callers;

afterEach(async () => {
  await callers?.stop();
  await house?.close();
});

test.each([1, 2])(
  '10,000 calls over 500 keys from 4 processes to %i services: 500 are applied, nothing else than 201 is ever answered',
  async (instances) => {
    house = await openHouse(instances);
    callers = new Callers();
    const keys = rounds(500);
    const draw = seeded(500);
    const calls = Array.from({ length: keys * CALLS_A_KEY }, (_, n) => ({ k: n % keys, at: draw() }))
      .sort((a, b) => a.at - b.at)
      .map(({ k }, n) => {
        const changes = {
          action: ACTIONS[k % ACTIONS.length],
          subject: { type: 'many', id: `S-${k >> 2}` },
          params: { k },
        };
        return house.call(n, { inputs: inputs(changes) }, `many-${k}`, { prefer: 'wait=30' });
      });
    const replies = await callers.send(calls);

    expect(tally(replies)).toEqual({ 201: keys, '201 again': keys * (CALLS_A_KEY - 1) });
    const bodies = new Map<string | undefined, Set<string>>();
    replies.forEach(({ text }, n) => {
      const key = calls[n]?.key;
      bodies.set(key, (bodies.get(key) ?? new Set()).add(text));
    });
    expect([...bodies.values()].every((texts) => texts.size === 1)).toBe(true);
    expect(replies.filter((reply) => !isReplay(reply)).length).toBe(keys);
    expect(await house.database.count('SELECT count(*) FROM effect')).toBe(keys);
    expect(await house.database.count('SELECT count(*) FROM ledger_entry')).toBe(keys);
    expect(await house.database.count('SELECT count(*) FROM attempt')).toBe(calls.length);
    expect(await violations(house.database)).toEqual([]);
    for (const service of house.services) expect(service.output()).not.toMatch(/"level":(50|60)/);
  },
);
