import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { dispositions, effectsAndEntries } from '../support/audit.js';
import { Callers, isReplay, tally, type Call, type CallReply } from '../support/callers.js';
import { openHouse, type House } from '../support/house.js';
import { clientsOf, inputs, type Client } from '../support/index.js';
import { claim, letExpire, type Claim } from '../support/leases.js';
import { IS_LONG, rounds } from '../support/rounds.js';
import { putActions } from '../support/stage.js';

const CALLERS = 32;
const AT_ONCE = { prefer: 'wait=0' };
const APPLIED = { status: 'applied', result: { refundId: 're_93' } };

/** What a caller of a lease may be told: the status, of a problem its code, and whether it was a replay. */
function told(replies: readonly CallReply[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const reply of replies) {
    const code = reply.status >= 400 ? ` ${JSON.parse(reply.text).code}` : '';
    const kind = reply.failure ?? `${reply.status}${code}${isReplay(reply) ? ' again' : ''}`;
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
}

describe.each(IS_LONG ? [1, 2] : [2])('32 callers in 4 processes, %i services on one database', (instances) => {
  let house: House;
  let callers: Callers;
  let orchestrator: Client;

  beforeAll(async () => {
    house = await openHouse(instances, { DATABASE_POOL_SIZE: '5' });
    callers = new Callers();
    const clients = clientsOf(house.services[0]?.url ?? '', house.tokens);
    ({ orchestrator } = clients);
    await putActions(clients.admin, {
      'pay.send': { execution: 'caller' },
      'pay.once': { execution: 'caller', uniqueness: 'subject-and-period', sameContent: 'allow' },
      'pay.blind': { execution: 'caller', onExpiredLease: 'unknown' },
    });
  });

  afterAll(async () => {
    await callers?.stop();
    await house?.close();
  });

  // The services alternate by fours, and what differs between callers by eights: each process has some of all.
  const atOnce = (callOf: (n: number) => Call): Promise<CallReply[]> =>
    callers.send(Array.from({ length: CALLERS }, (_, n) => callOf(n)));
  const place = (n: number): number => Math.floor(n / 4);
  const side = (n: number): number => Math.floor(n / 8) % 2;
  const bodyOf = (action: string, id: string, changes = {}): { inputs: Record<string, unknown> } => ({
    inputs: inputs({ action, subject: { type: 'case', id }, ...changes }),
  });
  const claimed = (replies: readonly CallReply[]): CallReply => {
    const [first, ...others] = replies.filter(({ status }) => status === 202);
    if (first === undefined || others.length > 0) throw new Error(`Not one claim: ${JSON.stringify(told(replies))}`);
    return first;
  };
  const holderOf = ({ text }: CallReply): { decisionId: string; lease: { token: string; number: number } } =>
    JSON.parse(text);
  const completion = (
    n: number,
    { decisionId, token }: { decisionId: string; token: string },
    outcome = APPLIED,
  ): Call => ({
    ...house.call(place(n), { leaseToken: token, outcome }),
    path: `/v1/decisions/${decisionId}/completion`,
  });
  const heldRows = (id: string): Promise<number> =>
    house.database.count('SELECT count(*) FROM hold WHERE subject_id = $1', [id]);

  test('one key: one is given the lease, the others are told that it is held; after its completion all replay', async () => {
    for (let round = 0; round < rounds(50); round += 1) {
      const key = `one-${round}`;
      const ask = (): Promise<CallReply[]> =>
        atOnce((n) => house.call(place(n), bodyOf('pay.send', key), key, AT_ONCE));
      const first = await ask();
      expect(told(first)).toEqual({ 202: 1, '409 in-flight': CALLERS - 1 });
      const { decisionId, lease } = holderOf(claimed(first));
      expect(lease.number).toBe(1);
      for (const { text, headers, status } of first) {
        expect(JSON.parse(text)).toMatchObject({ decisionId, state: 'in_flight' });
        if (status === 409) expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(1);
      }
      expect(await effectsAndEntries(house.database, key)).toEqual({ W: 0, L: 0 });

      const ends = await atOnce((n) => completion(n, { decisionId, token: lease.token }));
      expect(tally(ends)).toEqual({ 200: 1, '200 again': CALLERS - 1 });
      const again = await ask();
      expect(tally(again)).toEqual({ '201 again': CALLERS });
      expect(new Set([...ends, ...again].map(({ text }) => text)).size).toBe(1);
      expect(await effectsAndEntries(house.database, key)).toEqual({ W: 1, L: 1 });
      expect(await dispositions(house.database, key)).toEqual({
        created: 1,
        in_flight: CALLERS - 1,
        completed: 1,
        replayed: 2 * CALLERS - 1,
      });
    }
  });

  test('one key and one nonce: everybody is given the same lease', async () => {
    for (let round = 0; round < rounds(50); round += 1) {
      const key = `nonce-${round}`;
      const body = { ...bodyOf('pay.send', key), leaseNonce: `nonce-of-one-holder-${round}-0000` };
      const replies = await atOnce((n) => house.call(place(n), body, key));
      expect(told(replies)).toEqual({ 202: CALLERS });
      expect(new Set(replies.map((reply) => holderOf(reply).lease.token)).size).toBe(1);
      expect(await dispositions(house.database, key)).toEqual({ created: 1, replayed: CALLERS - 1 });
    }
  });

  test('two keys of one content: one is given the lease, the others are its twins, and end in its outcome', async () => {
    for (let round = 0; round < rounds(50); round += 1) {
      const id = `content-${round}`;
      const ask = (): Promise<CallReply[]> =>
        atOnce((n) => house.call(place(n), bodyOf('pay.send', id), `${id}-${side(n)}`, AT_ONCE));
      const first = await ask();
      expect(told(first)).toEqual({ 202: 1, '409 in-flight': CALLERS - 1 });
      const { decisionId, lease } = holderOf(claimed(first));
      expect(new Set(first.map(({ text }) => JSON.parse(text).decisionId))).toEqual(new Set([decisionId]));

      const [done] = await callers.send([completion(0, { decisionId, token: lease.token })]);
      const again = await ask();
      expect(tally(again)).toEqual({ '201 again': CALLERS });
      expect(new Set(again.map(({ text }) => text))).toEqual(new Set([done?.text]));
      expect(await house.database.count('SELECT count(*) FROM decision_record WHERE subject_id = $1', [id])).toBe(1);
    }
  });

  test('two keys of one content, after the first has failed: one of either is given the lease', async () => {
    for (let round = 0; round < rounds(50); round += 1) {
      const id = `freed-${round}`;
      const failed = await claim(orchestrator, bodyOf('pay.send', id), `${id}-0`);
      await failed.fail('none');
      const replies = await atOnce((n) => house.call(place(n), bodyOf('pay.send', id), `${id}-${side(n)}`, AT_ONCE));
      expect(told(replies)).toEqual({ 202: 1, '409 in-flight': CALLERS - 1 });
      const { decisionId, lease } = holderOf(claimed(replies));
      expect(lease.number).toBe(decisionId === failed.decisionId ? 2 : 1);
      expect(await house.database.count('SELECT count(*) FROM content_hold WHERE decision_id = $1', [decisionId])).toBe(
        1,
      );
    }
  });

  test('two keys for one subject and period: one is given the lease, the others wait for it, and then it has the place', async () => {
    for (let round = 0; round < rounds(50); round += 1) {
      const id = `subject-${round}`;
      const params = (n: number): object => ({ params: { reportingPeriod: '2026-Q3', of: side(n) } });
      const ask = (): Promise<CallReply[]> =>
        atOnce((n) => house.call(place(n), bodyOf('pay.once', id, params(n)), `${id}-${side(n)}`, AT_ONCE));
      const first = await ask();
      expect(told(first)).toEqual({ 202: 1, '409 in-flight': CALLERS - 1 });
      const { decisionId, lease } = holderOf(claimed(first));
      expect(new Set(first.map(({ text }) => JSON.parse(text).decisionId))).toEqual(new Set([decisionId]));
      expect(await heldRows(id)).toBe(1);
      expect(await house.database.count('SELECT count(*) FROM decision_record WHERE subject_id = $1', [id])).toBe(1);

      await callers.send([completion(0, { decisionId, token: lease.token })]);
      const again = await ask();
      expect(told(again)).toEqual({
        '201 again': CALLERS / 2,
        '409 duplicate-subject': 1,
        '409 duplicate-subject again': CALLERS / 2 - 1,
      });
      expect(await heldRows(id)).toBe(0);
      expect(await house.database.count('SELECT count(*) FROM effect WHERE subject_id = $1', [id])).toBe(1);
    }
  });

  /** A lease whose time is over, and nobody has taken it. */
  const lapsed = async (action: string, id: string): Promise<Claim> => {
    const held = await claim(orchestrator, bodyOf(action, id), id);
    await letExpire(house.database, held.decisionId);
    return held;
  };

  test('a lease that ran out: one reclaims it with the number 2, the others wait for that one, the first has lost', async () => {
    for (let round = 0; round < rounds(50); round += 1) {
      const key = `lapsed-${round}`;
      const first = await lapsed('pay.send', key);
      const replies = await atOnce((n) => house.call(place(n), bodyOf('pay.send', key), key, AT_ONCE));
      expect(told(replies)).toEqual({ 202: 1, '409 in-flight': CALLERS - 1 });
      const { decisionId, lease } = holderOf(claimed(replies));
      expect([decisionId, lease.number]).toEqual([first.decisionId, 2]);
      expect((await first.complete(APPLIED)).body.code).toBe('lease-lost');
      const [done] = await callers.send([completion(0, { decisionId, token: lease.token })]);
      expect(done?.status).toBe(200);
      expect(await effectsAndEntries(house.database, key)).toEqual({ W: 1, L: 1 });
    }
  });

  test('its first holder completes it while others reclaim it: either it is completed, or it is lost, and never both', async () => {
    for (let round = 0; round < rounds(50); round += 1) {
      const key = `race-${round}`;
      const first = await lapsed('pay.send', key);
      const replies = await atOnce((n) =>
        side(n) === 0 ? completion(n, first) : house.call(place(n), bodyOf('pay.send', key), key, AT_ONCE),
      );
      const half = CALLERS / 2;
      if (replies.some(({ status }) => status === 202)) {
        expect(told(replies)).toEqual({ 202: 1, '409 in-flight': half - 1, '409 lease-lost': half });
        expect(await effectsAndEntries(house.database, key)).toEqual({ W: 0, L: 0 });
        const { decisionId, lease } = holderOf(claimed(replies));
        const [done] = await callers.send([completion(0, { decisionId, token: lease.token })]);
        expect(done?.status).toBe(200);
      } else {
        // Who met the row while the completion had it is told to come back.
        const { '409 in-flight': waiting = 0, '201 again': replayed = 0, ...ends } = told(replies);
        expect(ends).toEqual({ 200: 1, '200 again': half - 1 });
        expect(waiting + replayed).toBe(half);
        expect(new Set(replies.filter(({ status }) => status < 300).map(({ text }) => text)).size).toBe(1);
      }
      expect(await effectsAndEntries(house.database, key)).toEqual({ W: 1, L: 1 });
    }
  });

  test('its first holder renews it while others reclaim it: either it is kept, or it is lost', async () => {
    for (let round = 0; round < rounds(50); round += 1) {
      const key = `renew-${round}`;
      const { decisionId, token } = await lapsed('pay.send', key);
      const renewal = (n: number): Call => ({
        ...house.call(place(n), { leaseToken: token }),
        path: `/v1/decisions/${decisionId}/lease`,
      });
      const replies = await atOnce((n) =>
        side(n) === 0 ? renewal(n) : house.call(place(n), bodyOf('pay.send', key), key, AT_ONCE),
      );
      const half = CALLERS / 2;
      const isReclaimed = replies.some(({ status }) => status === 202);
      expect(told(replies)).toEqual(
        isReclaimed
          ? { 202: 1, '409 in-flight': half - 1, '409 lease-lost': half }
          : { 200: half, '409 in-flight': half },
      );
    }
  });

  test('where a lease that ran out is unknown, its holder completes it whatever the others were told meanwhile', async () => {
    for (let round = 0; round < rounds(50); round += 1) {
      const key = `blind-${round}`;
      const first = await lapsed('pay.blind', key);
      const replies = await atOnce((n) =>
        side(n) === 0 ? completion(n, first) : house.call(place(n), bodyOf('pay.blind', key), key, AT_ONCE),
      );
      const half = CALLERS / 2;
      const {
        '409 outcome-unknown': unknown = 0,
        '409 in-flight': waiting = 0,
        '201 again': replayed = 0,
        ...ends
      } = told(replies);
      expect(ends).toEqual({ 200: 1, '200 again': half - 1 });
      expect(unknown + waiting + replayed).toBe(half);
      expect(await effectsAndEntries(house.database, key)).toEqual({ W: 1, L: 1 });
    }
  });

  test('one holder that reports success and failure at once: what came first stands, the other has lost', async () => {
    for (let round = 0; round < rounds(50); round += 1) {
      const key = `both-${round}`;
      const held = await claim(orchestrator, bodyOf('pay.send', key), key);
      const failure = (n: number): Call => ({
        ...house.call(place(n), { leaseToken: held.token, reason: 'refused', effect: 'none' }),
        path: `/v1/decisions/${held.decisionId}/failure`,
      });
      const replies = await atOnce((n) => (side(n) === 0 ? completion(n, held) : failure(n)));
      expect(told(replies)).toEqual({ 200: 1, '200 again': CALLERS / 2 - 1, '409 lease-lost': CALLERS / 2 });
      const { body } = await orchestrator.get(`/v1/decisions/${held.decisionId}`);
      const isApplied = replies.some(({ status, text }) => status === 200 && JSON.parse(text).state === 'completed');
      expect(body.state).toBe(isApplied ? 'completed' : 'failed');
      expect(await effectsAndEntries(house.database, key)).toEqual(isApplied ? { W: 1, L: 1 } : { W: 0, L: 0 });
    }
  });
});
