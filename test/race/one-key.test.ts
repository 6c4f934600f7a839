import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { dispositions, effectsAndEntries, violations, winners } from '../support/audit.js';
import { Callers, isReplay, tally, type CallReply } from '../support/callers.js';
import { openHouse, type House } from '../support/house.js';
import { inputs } from '../support/index.js';
import { rounds } from '../support/rounds.js';

const CALLERS = 64;

const created = (replies: readonly CallReply[]): CallReply => {
  const [first] = replies.filter((reply) => reply.status === 201 && !isReplay(reply));
  if (first === undefined) throw new Error(`Nothing was created: ${JSON.stringify(tally(replies))}`);
  return first;
};

describe.each([1, 2])('64 callers in 4 processes, %i services on one database', (instances) => {
  let house: House;
  let callers: Callers;

  beforeAll(async () => {
    house = await openHouse(instances);
    callers = new Callers();
  });

  afterAll(async () => {
    await callers?.stop();
    await house?.close();
  });

  const atOnce = (bodyOf: (n: number) => unknown, keyOf: (n: number) => string | undefined): Promise<CallReply[]> =>
    // The services alternate by fours, so that every process calls every service.
    callers.send(Array.from({ length: CALLERS }, (_, n) => house.call(Math.floor(n / 4), bodyOf(n), keyOf(n))));

  test.each([
    ['a declarative action', 'note.add'],
    ['an action with a handler', 'refund.create'],
  ])('one client key of %s: one is told 201 first, 63 are told the same bytes again, W = L = 1', async (_, action) => {
    for (let round = 0; round < rounds(50); round += 1) {
      const key = `one-${action}-${round}`;
      const body = { inputs: inputs({ action, subject: { type: 'case', id: key } }) };
      const replies = await atOnce(
        () => body,
        () => key,
      );

      expect(tally(replies)).toEqual({ 201: 1, '201 again': CALLERS - 1 });
      expect(new Set(replies.map(({ text }) => text)).size).toBe(1);
      expect(new Set(replies.map(({ headers }) => headers['location'])).size).toBe(1);
      expect(new Set(replies.map(({ headers }) => headers['idempotency-expires'])).size).toBe(1);
      expect(await effectsAndEntries(house.database, key)).toEqual({ W: 1, L: 1 });
      expect(await dispositions(house.database, key)).toEqual({ created: 1, replayed: CALLERS - 1 });
      expect(await winners(house.database, key)).toBe(1);
    }
    expect(await violations(house.database)).toEqual([]);
  });

  test('one content key: one is told 201 first, 63 are told the same bytes again, W = L = 1', async () => {
    for (let round = 0; round < rounds(50); round += 1) {
      const body = { inputs: inputs({ subject: { type: 'content', id: `C-${round}` } }) };
      const replies = await atOnce(
        () => body,
        () => undefined,
      );

      expect(tally(replies)).toEqual({ 201: 1, '201 again': CALLERS - 1 });
      expect(new Set(replies.map(({ text }) => text)).size).toBe(1);
      const { key, contentKey } = JSON.parse(created(replies).text);
      expect(key).toBe(contentKey);
      expect(await effectsAndEntries(house.database, key)).toEqual({ W: 1, L: 1 });
    }
  });

  test.each([
    ['a declarative action', 'note.add'],
    ['an action with a handler', 'refund.create'],
  ])(
    'one key and two bodies of %s: one body is committed, who sent the other gets 422, the ledger has the winner',
    async (_, action) => {
      for (let round = 0; round < rounds(50); round += 1) {
        const key = `bodies-${action}-${round}`;
        const bodyOf = (n: number): unknown => ({
          inputs: inputs({ action, subject: { type: 'case', id: key }, params: { amount: `${1 + (n % 2)}.00` } }),
        });
        // By eights: each process has both bodies.
        const replies = await atOnce(
          (n) => bodyOf(Math.floor(n / 8)),
          () => key,
        );

        expect(tally(replies)).toEqual({ 201: 1, '201 again': CALLERS / 2 - 1, 422: CALLERS / 2 });
        const winner = created(replies);
        const winning = Math.floor(replies.indexOf(winner) / 8) % 2;
        const { decisionId } = JSON.parse(winner.text);
        replies.forEach((reply, n) => {
          if (Math.floor(n / 8) % 2 === winning) return expect(reply.text).toBe(winner.text);
          const problem = JSON.parse(reply.text);
          expect(reply.headers['content-type']).toContain('application/problem+json');
          expect(problem).toMatchObject({ code: 'fingerprint-mismatch', decisionId, state: 'completed' });
          return expect(problem.retryable).toBe(false);
        });
        expect(await effectsAndEntries(house.database, key)).toEqual({ W: 1, L: 1 });
        const [kept] = await house.database.query<{ inputs: string; agrees: boolean }>(
          `SELECT d.inputs, d.fingerprint = sha256(convert_to('{"inputs":' || d.inputs || ',"note":null}', 'UTF8'))
                            AND d.fingerprint = i.fingerprint AS agrees
             FROM ledger_entry l JOIN decision_record d USING (tenant_id, decision_id) JOIN idempotency_record i USING (tenant_id, decision_id)
            WHERE l.idem_key = $1`,
          [key],
        );
        expect(kept?.agrees).toBe(true);
        expect(JSON.parse(kept?.inputs ?? '{}').params).toEqual({ amount: `${1 + winning}.00` });
        expect(await dispositions(house.database, key)).toEqual({
          created: 1,
          replayed: CALLERS / 2 - 1,
          mismatch: CALLERS / 2,
        });
      }
      expect(await violations(house.database)).toEqual([]);
    },
  );

  test.each([
    ['a declarative action', 'note.add'],
    ['an action with a handler', 'refund.create'],
  ])(
    'two client keys of one content of %s: one decision, everybody is told its bytes, one of them first',
    async (_, action) => {
      for (let round = 0; round < rounds(50); round += 1) {
        const id = `content-${action}-${round}`;
        const keyOf = (n: number): string => `${id}-${'ab'[Math.floor(n / 8) % 2]}`;
        const body = { inputs: inputs({ action, subject: { type: 'case', id } }) };
        const replies = await atOnce(() => body, keyOf);

        expect(tally(replies)).toEqual({ 201: 1, '201 again': CALLERS - 1 });
        const winner = created(replies);
        const key = keyOf(replies.indexOf(winner));
        const other = key.endsWith('a') ? `${id}-b` : `${id}-a`;
        expect(new Set(replies.map(({ text }) => text)).size).toBe(1);
        expect(JSON.parse(winner.text)).toMatchObject({ key, keySource: 'client' });
        expect(await effectsAndEntries(house.database, key)).toEqual({ W: 1, L: 1 });
        expect(await effectsAndEntries(house.database, other)).toEqual({ W: 0, L: 0 });
        const decisions = await house.database.query('SELECT FROM decision_record WHERE subject_id = $1', [id]);
        expect(decisions).toHaveLength(1);
        expect(await dispositions(house.database, key)).toEqual({ created: 1, replayed: CALLERS / 2 - 1 });
        expect(await dispositions(house.database, other)).toEqual({ same_content: 1, replayed: CALLERS / 2 - 1 });
      }
      expect(await violations(house.database)).toEqual([]);
    },
  );

  test('two client keys of content that may come once: who is second is refused with the winner and leaves no trace', async () => {
    for (let round = 0; round < rounds(50); round += 1) {
      const id = `refuse-${round}`;
      const keyOf = (n: number): string => `${id}-${'ab'[Math.floor(n / 8) % 2]}`;
      const body = { inputs: inputs({ action: 'note.refuse', subject: { type: 'case', id } }) };
      const replies = await atOnce(() => body, keyOf);

      expect(tally(replies)).toEqual({ 201: 1, '201 again': CALLERS / 2 - 1, 409: CALLERS / 2 });
      const winner = created(replies);
      const key = keyOf(replies.indexOf(winner));
      const { decisionId, recordedAt } = JSON.parse(winner.text);
      for (const { status, text } of replies) {
        if (status === 201) expect(text).toBe(winner.text);
        else expect(JSON.parse(text)).toMatchObject({ code: 'same-content', winner: { decisionId, key, recordedAt } });
      }
      const records = await house.database.query('SELECT FROM idempotency_record WHERE starts_with(idem_key, $1)', [
        `${id}-`,
      ]);
      expect(records).toHaveLength(1);
    }
    expect(await violations(house.database)).toEqual([]);
  });
});
