import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { violations } from '../support/audit.js';
import { Callers, isReplay, tally } from '../support/callers.js';
import { openHouse, type House } from '../support/house.js';
import { inputs } from '../support/index.js';
import { rounds } from '../support/rounds.js';

const TWINS = 32;

let house: House;
let callers: Callers;

beforeAll(async () => {
  // A stored response is over as soon as it is stored.
  house = await openHouse(2, { RESPONSE_RETENTION_OVERRIDE_SECONDS: '0' });
  callers = new Callers();
});

afterAll(async () => {
  await callers?.stop();
  await house?.close();
});

test.each(['note.add', 'note.repeat', 'refund.create', 'report.file'])(
  'twins of %s, while their response is pruned at the instant at which it is stored: one runs, all are told its bytes',
  async (action) => {
    let isOver = false;
    let pruned = 0;
    const prune = async (): Promise<void> => {
      while (!isOver) {
        const [row] = await house.database.query<{ pruned: number }>(`SELECT prune_responses('acme', 1000) AS pruned`);
        pruned += row?.pruned ?? 0;
      }
    };
    const pruning = Promise.all([prune(), prune()]);
    const answers = [];
    for (let round = 0; round < rounds(200); round += 1) {
      const id = `${action}-${round}`;
      // Two keys of one content, so that bindings are pruned too; where content may come again, one key.
      const keyOf = (n: number): string => (action === 'note.repeat' ? id : `${id}-${'ab'[n % 2]}`);
      const body = {
        inputs: inputs({ action, subject: { type: 'case', id }, params: { reportingPeriod: '2026-H2' } }),
      };
      const calls = Array.from({ length: TWINS }, (_, n) => house.call(n, body, keyOf(n >> 2)));
      answers.push({ id, replies: await callers.send(calls) });
    }
    isOver = true;
    await pruning;

    expect(pruned).toBeGreaterThan(0);
    for (const { id, replies } of answers) {
      expect([id, tally(replies)]).toEqual([id, { 201: 1, '201 again': TWINS - 1 }]);
      expect(new Set(replies.map(({ text }) => text)).size).toBe(1);
      expect(replies.filter(isReplay)).toHaveLength(TWINS - 1);
    }
    expect(await house.database.count(`SELECT count(*) FROM effect WHERE starts_with(subject_id, '${action}-')`)).toBe(
      answers.length,
    );
    expect(await violations(house.database)).toEqual([]);
  },
);
