import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { effectsAndEntries, violations } from '../support/audit.js';
import { Callers, isReplay, tally, type CallReply } from '../support/callers.js';
import { openHouse, type House } from '../support/house.js';
import { inputs } from '../support/index.js';
import { rounds } from '../support/rounds.js';

const KEYS = 16;
/** Each key is sent by this many callers at once: 64 in all. */
const CALLERS_A_KEY = 4;
/** Refunds of one case go through one row, one after the other; nobody is to be told to come back here. */
const PATIENT = { prefer: 'wait=30' };

describe('16 keys that want one place, 64 callers in 4 processes, 2 services on one database', () => {
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

  /** Sends each key's request from a caller of every process. `replies[k]` are those of key k. */
  async function atOnce(keyOf: (k: number) => string, inputsOf: (k: number) => unknown): Promise<CallReply[][]> {
    const calls = Array.from({ length: KEYS * CALLERS_A_KEY }, (_, n) => {
      const k = Math.floor(n / CALLERS_A_KEY);
      return house.call(k, { inputs: inputsOf(k) }, keyOf(k), PATIENT);
    });
    const replies = await callers.send(calls);
    return Array.from({ length: KEYS }, (_, k) => replies.slice(k * CALLERS_A_KEY, (k + 1) * CALLERS_A_KEY));
  }

  /** One answer of a key was the first, the others gave its bytes again; that first answer. */
  function firstOf(replies: readonly CallReply[]): CallReply {
    const first = replies.filter((reply) => !isReplay(reply));
    expect(first).toHaveLength(1);
    expect(new Set(replies.map(({ text }) => text)).size).toBe(1);
    expect(new Set(replies.map(({ status }) => status)).size).toBe(1);
    expect(new Set(replies.map(({ headers }) => headers['content-type'])).size).toBe(1);
    const [reply] = first;
    if (reply === undefined) throw new Error('There is no first answer');
    return reply;
  }

  async function replaysOf(
    keyOf: (k: number) => string,
    inputsOf: (k: number) => unknown,
    firsts: readonly CallReply[],
  ): Promise<void> {
    const again = await atOnce(keyOf, inputsOf);
    again.forEach((replies, k) => {
      for (const reply of replies) {
        expect(isReplay(reply)).toBe(true);
        expect(reply.status).toBe(firsts[k]?.status);
        expect(reply.text).toBe(firsts[k]?.text);
      }
    });
  }

  test.each([
    ['subject and period', 'report.file', { reportingPeriod: '2026-Q3' }],
    ['subject', 'case.close', {}],
    ['subject and period, with a handler', 'sar.file', { reportingPeriod: '2026-09' }],
  ])('unique by %s: one is applied, 15 are refused with the winner named, and again', async (_, action, period) => {
    for (let round = 0; round < rounds(50); round += 1) {
      const id = `${action}-${round}`;
      const keyOf = (k: number): string => `${id}-${k}`;
      const inputsOf = (k: number): unknown =>
        inputs({ action, subject: { type: 'case', id }, params: { ...period, by: k } });
      const firsts = (await atOnce(keyOf, inputsOf)).map(firstOf);

      expect(tally(firsts)).toEqual({ 201: 1, 409: KEYS - 1 });
      const winner = firsts.findIndex(({ status }) => status === 201);
      const { decisionId, recordedAt } = JSON.parse(firsts[winner]?.text ?? '');
      for (const [k, { status, text }] of firsts.entries()) {
        expect(await effectsAndEntries(house.database, keyOf(k))).toEqual({ W: k === winner ? 1 : 0, L: 1 });
        if (status === 201) continue;
        const problem = JSON.parse(text);
        expect(problem).toMatchObject({
          code: 'duplicate-subject',
          retryable: false,
          key: keyOf(k),
          winner: { decisionId, key: keyOf(winner), recordedAt },
        });
        expect(problem.recordedAt > recordedAt).toBe(true);
      }
      await replaysOf(keyOf, inputsOf, firsts);
    }
    expect(await violations(house.database)).toEqual([]);
  });

  test('refunds of one order of which 5 fit: 5 are applied, 11 are refused, the sum is right to the cent, and again', async () => {
    for (let round = 0; round < rounds(50); round += 1) {
      const id = `order-${round}`;
      const keyOf = (k: number): string => `${id}-${k}`;
      const inputsOf = (k: number): unknown =>
        inputs({
          action: 'refund.create',
          subject: { type: 'order', id },
          params: { amount: '10.10', currency: 'EUR', orderTotal: '60.59', line: k },
        });
      const firsts = (await atOnce(keyOf, inputsOf)).map(firstOf);

      expect(tally(firsts)).toEqual({ 201: 5, 409: KEYS - 5 });
      for (const [k, { status, text }] of firsts.entries()) {
        expect(await effectsAndEntries(house.database, keyOf(k))).toEqual({ W: status === 201 ? 1 : 0, L: 1 });
        if (status === 409) expect(JSON.parse(text)).toMatchObject({ code: 'refused', reason: 'exceeds-order-total' });
      }
      const totals = firsts
        .filter(({ status }) => status === 201)
        .map(({ text }) => JSON.parse(text).outcome.result.refundedTotal);
      expect(totals.sort()).toEqual(['10.10', '20.20', '30.30', '40.40', '50.50']);
      const [refunded] = await house.database.query('SELECT refunded::text FROM refund_case WHERE subject_id = $1', [
        id,
      ]);
      expect(refunded).toEqual({ refunded: '50.50' });
      await replaysOf(keyOf, inputsOf, firsts);
    }
    expect(await violations(house.database)).toEqual([]);
  });
});
