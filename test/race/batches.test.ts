import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { effectsAndEntries, violations } from '../support/audit.js';
import { Callers, isReplay, type Call } from '../support/callers.js';
import { openHouse, type House } from '../support/house.js';
import { inputs } from '../support/index.js';
import { rounds, seeded } from '../support/rounds.js';

interface Item {
  readonly status: number;
  readonly replayed: boolean;
  readonly body: unknown;
}

/** What one request for a key was told, alone or in a batch. */
interface Told {
  readonly status: number;
  readonly isReplay: boolean;
  readonly body: string;
}

const KEYS = 24;
const BATCHES = 32;
const SINGLES = 32;
const PATIENT = { prefer: 'wait=30' };

let house: House;
let callers: Callers;

beforeAll(async () => {
  house = await openHouse(2);
  callers = new Callers();
});

afterAll(async () => {
  await callers?.stop();
  await house?.close();
});

function shuffled(count: number, draw: () => number): number[] {
  return Array.from({ length: count }, (_, n) => ({ n, at: draw() }))
    .sort((a, b) => a.at - b.at)
    .map(({ n }) => n);
}

/**
 * Batches of all keys in an order of their own, and single requests between them. `toldOf` has what was told of each key.
 */
async function race(
  draw: () => number,
  keyOf: (k: number) => string,
  inputsOf: (k: number) => unknown,
): Promise<Map<string, Told[]>> {
  const calls: Call[] = [];
  const keysOfCall: number[][] = [];
  for (const n of shuffled(BATCHES + SINGLES, draw)) {
    if (n < BATCHES) {
      const order = shuffled(KEYS, draw);
      const decisions = order.map((k) => ({ idempotencyKey: keyOf(k), inputs: inputsOf(k) }));
      calls.push({ ...house.call(n, { decisions }, undefined, PATIENT), path: '/v1/decisions/batch' });
      keysOfCall.push(order);
    } else {
      const k = Math.floor(draw() * KEYS);
      calls.push(house.call(n, { inputs: inputsOf(k) }, keyOf(k), PATIENT));
      keysOfCall.push([k]);
    }
  }
  const told = new Map<string, Told[]>(Array.from({ length: KEYS }, (_, k) => [keyOf(k), []]));
  (await callers.send(calls)).forEach((reply, index) => {
    const [first, ...others] = keysOfCall[index] ?? [];
    if (calls[index]?.path === undefined) {
      const body = JSON.stringify(JSON.parse(reply.text));
      return told.get(keyOf(first ?? 0))?.push({ status: reply.status, isReplay: isReplay(reply), body });
    }
    expect([reply.status, reply.text.slice(0, 80)]).toEqual([200, expect.anything()]);
    const { items }: { items: Item[] } = JSON.parse(reply.text);
    return [first ?? 0, ...others].forEach((k, place) => {
      const { status = 0, replayed = false, body } = items[place] ?? {};
      told.get(keyOf(k))?.push({ status, isReplay: replayed, body: JSON.stringify(body) });
    });
  });
  return told;
}

test.each([
  ['declarative', ['note.add']],
  ['handled', ['refund.create']],
  ['mixed', ['note.add', 'refund.create', 'note.repeat']],
])(
  'batches and single requests for the same keys in different orders, %s actions: no deadlock, every key W = L = 1',
  async (what, actions) => {
    const draw = seeded(20_261_130);
    for (let round = 0; round < rounds(20); round += 1) {
      const keyOf = (k: number): string => `${what}-${round}-${k}`;
      const inputsOf = (k: number): unknown =>
        // Two keys share a case, so that handlers meet in their own rows too.
        inputs({
          action: actions[k % actions.length],
          subject: { type: what, id: `${round}-${k >> 1}` },
          params: { k },
        });
      for (const [key, answers] of await race(draw, keyOf, inputsOf)) {
        expect([key, [...new Set(answers.map(({ status }) => status))]]).toEqual([key, [201]]);
        expect(answers.filter((answer) => !answer.isReplay)).toHaveLength(1);
        expect(new Set(answers.map(({ body }) => body)).size).toBe(1);
        expect(await effectsAndEntries(house.database, key)).toEqual({ W: 1, L: 1 });
      }
    }
    expect(await violations(house.database)).toEqual([]);
  },
);

test('batches in which keys share contents and contents share places: one effect a place, no deadlock, the same answer for a key', async () => {
  const draw = seeded(1_130);
  for (let round = 0; round < rounds(20); round += 1) {
    // Keys 0 and 12 have one content, 1 and 13 another, …; contents 0, 3, 6, 9 want one place, 1, 4, 7, 10 the next, ….
    const keyOf = (k: number): string => `shared-${round}-${k}`;
    const inputsOf = (k: number): unknown => {
      const content = k % 12;
      return inputs({
        action: 'report.file',
        subject: { type: 'shared', id: `${round}-${content % 3}` },
        params: { reportingPeriod: '2026', content },
      });
    };
    const told = await race(draw, keyOf, inputsOf);
    for (const answers of told.values()) {
      expect(new Set(answers.map(({ status, body }) => `${status} ${body}`)).size).toBe(1);
      expect([201, 409]).toContain(answers[0]?.status);
    }
    for (let content = 0; content < 12; content += 1) {
      const twins = [...(told.get(keyOf(content)) ?? []), ...(told.get(keyOf(content + 12)) ?? [])];
      expect(new Set(twins.map(({ body }) => body)).size).toBe(1);
      expect(twins.filter((answer) => !answer.isReplay)).toHaveLength(1);
    }
    const effects = await house.database.query<{ subject_id: string }>(
      `SELECT subject_id FROM effect WHERE subject_type = 'shared' AND starts_with(subject_id, $1) ORDER BY 1`,
      [`${round}-`],
    );
    expect(effects.map(({ subject_id }) => subject_id)).toEqual([0, 1, 2].map((place) => `${round}-${place}`));
  }
  expect(await violations(house.database)).toEqual([]);
});
