import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, memoryStore } from '../../libs/client/src/index.js';
import { dispositions } from '../support/audit.js';
import { setDispatchStage, type DispatchStage } from '../support/dispatching.js';
import { atOnce, claim, type Claim } from '../support/leases.js';
import { Client, inputs, type Reply, type Service } from '../support/index.js';
import { IS_LONG } from '../support/rounds.js';
import { shifted } from '../support/shifted.js';
import { putActions, until } from '../support/stage.js';

const LEASE_SECONDS = 2;
const AFTER_THE_LEASE_MS = LEASE_SECONDS * 1_000 + 200;
const TEN_MINUTES_MS = 600_000;
const RETENTION_SECONDS = 90 * 86_400;
const APPLIED = { status: 'applied', result: { refundId: 're_93' } };
const WAIT = { prefer: 'wait=20' };

/** Seconds since 1970 of an RFC 3339 time with microseconds. */
const secondsOf = (time: string): number => Date.parse(`${time.slice(0, 23)}Z`) / 1_000;

// Of the two APIs one is ahead and the other behind, and so are the workers: nothing that they agree on is by their clocks.
describe.each([
  ['ten minutes ahead', TEN_MINUTES_MS] as const,
  ...(IS_LONG ? [['ten minutes behind', -TEN_MINUTES_MS] as const] : []),
])('an API that is %s, and a worker that is wrong by as much the other way', (_, offsetMs) => {
  let stage: DispatchStage;
  let other: Client;
  let worker: Service;
  let subjects = 0;
  const about = (action: string): { inputs: Record<string, unknown> } => {
    subjects += 1;
    return { inputs: inputs({ action, subject: { type: 'case', id: `T-${subjects}` } }) };
  };
  /** The clock that decides. */
  const databaseTime = (): Promise<number> => stage.database.count('SELECT extract(epoch FROM clock_timestamp())');

  beforeAll(async () => {
    stage = await setDispatchStage({ WORKER: 'off', ...shifted(offsetMs) });
    other = new Client((await stage.addService(shifted(-offsetMs))).url, stage.tokens.orchestrator);
    worker = await stage.addService({ WORKER: 'only', ...shifted(-offsetMs) });
    const rules = { execution: 'caller', leaseSeconds: LEASE_SECONDS };
    await putActions(stage.admin, {
      'note.add': { execution: 'transactional' },
      'pay.send': rules,
      'pay.blind': { ...rules, onExpiredLease: 'unknown' },
    });
    await stage.act('refund.pay', {}, { leaseSeconds: LEASE_SECONDS });
  });
  afterAll(() => stage?.clear());

  test('is wrong by that', async () => {
    const { headers } = await stage.orchestrator.get('/healthz');
    const aheadMs = Date.parse(headers.get('date') ?? '') - Date.now();
    expect(Math.abs(aheadMs - offsetMs)).toBeLessThan(5_000);
  });

  test('records a decision, and says until when its answer is kept, by the time of the database', async () => {
    const before = await databaseTime();
    const body = about('note.add');
    const first = await stage.orchestrator.decide(body);
    const replay = await other.decide(body);
    const at = secondsOf(first.body.recordedAt);
    expect(at).toBeGreaterThanOrEqual(before - 0.001);
    expect(at).toBeLessThanOrEqual(await databaseTime());
    const expires = first.headers.get('idempotency-expires') ?? '';
    expect(Date.parse(expires) / 1_000).toBe(Math.floor(at) + RETENTION_SECONDS);
    expect([replay.text, replay.headers.get('idempotency-expires')]).toEqual([first.text, expires]);
    const { body: read } = await other.get(`/v1/decisions/${first.body.decisionId}`);
    expect(secondsOf(read.receivedAt)).toBeLessThanOrEqual(at);
  });

  test('lists decisions of both APIs in the order of recording, whatever time is in their ids', async () => {
    const made: string[] = [];
    for (const client of [stage.orchestrator, other, stage.orchestrator, other])
      made.push((await client.decide(about('note.add'))).body.decisionId);
    expect(made.toSorted()).not.toEqual(made);
    const { body } = await other.get('/v1/decisions?action=note.add&limit=4&order=desc');
    const ids = body.items.map((row: { decisionId: string }) => row.decisionId);
    expect(ids.toReversed()).toEqual(made);
    // The pages of a walk do not depend on the ids' order either.
    const walked: string[] = [];
    for (let cursor = ''; walked.length < 4;) {
      const page: Reply = await other.get(`/v1/decisions?action=note.add&limit=1&order=desc${cursor}`);
      walked.push(page.body.items[0].decisionId);
      cursor = `&cursor=${page.body.nextCursor}`;
    }
    expect(walked.toReversed()).toEqual(made);
  });

  /** Whether a lease ends where it should, by the time of the database. */
  async function expectWholeLease(lockedUntil: string): Promise<void> {
    const left = secondsOf(lockedUntil) - (await databaseTime());
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(LEASE_SECONDS);
  }

  test('gives, keeps and renews a lease', async () => {
    const body = about('pay.send');
    const held = await claim(stage.orchestrator, body);
    await expectWholeLease(held.reply.body.lease.lockedUntil);
    await sleep(LEASE_SECONDS * 600);
    const renewed = await held.renew();
    await expectWholeLease(renewed.body.lockedUntil);
    await sleep(LEASE_SECONDS * 600);
    for (const client of [stage.orchestrator, other]) {
      const twin = await atOnce(client, body);
      expect([twin.status, twin.body.code]).toEqual([409, 'in-flight']);
      expect(Number(twin.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
      expect(Number(twin.headers.get('retry-after'))).toBeLessThanOrEqual(LEASE_SECONDS);
    }
    expect((await held.complete(APPLIED)).status).toBe(200);
  });

  test('says with each lease what time it is where the lease is judged', async () => {
    const held = await claim(stage.orchestrator, about('pay.send'));
    for (const { headers } of [held.reply, await held.renew()]) {
      const behind = (await databaseTime()) - Date.parse(headers.get('date') ?? '') / 1_000;
      expect(behind).toBeGreaterThanOrEqual(0);
      expect(behind).toBeLessThan(3);
    }
  });

  test('lets a lease be reclaimed once it is over, by either API, and its first holder has lost', async () => {
    const body = about('pay.send');
    const first = await claim(stage.orchestrator, body);
    await sleep(AFTER_THE_LEASE_MS);
    const second: Claim = await claim(other, body);
    expect([second.decisionId, second.reply.body.lease.number]).toEqual([first.decisionId, 2]);
    await expectWholeLease(second.reply.body.lease.lockedUntil);
    expect((await first.complete(APPLIED)).body.code).toBe('lease-lost');
    expect((await second.complete(APPLIED)).status).toBe(200);
  });

  test('calls an outcome unknown after the lease, and not before', async () => {
    const body = about('pay.blind');
    const held = await claim(stage.orchestrator, body);
    expect((await atOnce(other, body)).body.code).toBe('in-flight');
    await sleep(AFTER_THE_LEASE_MS);
    expect((await atOnce(other, body)).body.code).toBe('outcome-unknown');
    expect((await held.complete(APPLIED)).status).toBe(200);
  });

  test('lets the client keep a lease for longer than its length, with renewals in good time and no more', async () => {
    const { url } = stage.orchestrator;
    const client = createClient({ url, token: stage.tokens.orchestrator, tenant: 'acme', store: memoryStore() });
    const body = about('pay.send');
    const decided = client.decide(body.inputs as never, async ({ lease }) => {
      await sleep(AFTER_THE_LEASE_MS * 1.5);
      return { number: lease.number, twin: (await atOnce(other, body)).body.code };
    });
    const { outcome, key } = await decided;
    expect(outcome.result).toEqual({ number: 1, twin: 'in-flight' });
    const { renewed = 0 } = await dispositions(stage.database, key);
    expect(renewed).toBeGreaterThanOrEqual(1);
    expect(renewed).toBeLessThanOrEqual(12);
  });

  test.each([
    ['in seconds', { status: 429, headers: { 'retry-after': '2' } }, 1_990],
    ['as a date, beside the provider’s own', { status: 503, headers: dates(2) }, 1_990],
    ['as a date, alone', { status: 503, askedForInMs: 3_000 }, 1_900],
  ])('waits before the next call as long as the provider asks, %s', async (form, step, leastMs) => {
    const key = `asked ${form}`.replaceAll(/\W+/g, '-');
    const queued = await stage.decide(key, 'refund.pay', [step, {}]);
    await until(
      async () => stage.provider.arrivals(key).length,
      (count) => count > 0,
    );
    await sleep(300);
    const twin = await stage.decide(key, 'refund.pay', [step, {}], { prefer: 'wait=0' });
    expect(Number(twin.headers.get('retry-after'))).toBeLessThanOrEqual(3);
    expect((await stage.settled(queued.body.decisionId)).body.state).toBe('completed');
    const [first, second] = stage.provider.arrivals(key);
    const pausedMs = (second?.at ?? 0) - (first?.at ?? 0);
    expect(pausedMs).toBeGreaterThanOrEqual(leastMs);
    expect(pausedMs).toBeLessThan(10_000);
  });

  test('lets a killed worker be taken over by one that is wrong the other way, within one lease, and no sooner', async () => {
    const { body } = await stage.decide('killed', 'refund.pay', [{ waitMs: 1_500 }, {}]);
    await until(
      async () => stage.provider.arrivals('killed').length,
      (count) => count > 0,
    );
    await worker.kill();
    worker = await stage.addService({ WORKER: 'only', ...shifted(offsetMs) });
    const startedAt = performance.now();
    expect((await stage.settled(body.decisionId)).body.state).toBe('completed');
    expect(performance.now() - startedAt).toBeLessThan(LEASE_SECONDS * 1_000 + 1_500);
    const [first, second] = stage.provider.arrivals('killed');
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(LEASE_SECONDS * 1_000 - 200);
    expect([second?.overlaps, stage.provider.effects('killed')]).toEqual([false, 1]);
    expect((await stage.decide('after-killed', 'refund.pay', [{}], WAIT)).status).toBe(201);
  });
});

/** A date in `Retry-After`, so many seconds after that of the answer, of a provider whose own clock is wrong too. */
function dates(seconds: number): Record<string, string> {
  const at = Date.UTC(1999, 0, 1);
  return { date: new Date(at).toUTCString(), 'retry-after': new Date(at + seconds * 1_000).toUTCString() };
}
