import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { dispositions } from '../support/audit.js';
import { setDispatchStage, type DispatchStage } from '../support/dispatching.js';
import type { Step } from '../support/provider.js';

let stage: DispatchStage;
beforeAll(async () => {
  stage = await setDispatchStage();
  await stage.act('refund.pay', { timeoutMs: 400 });
  await stage.act('refund.thrice', { maxAttempts: 3 });
  await stage.act(
    'refund.keyless',
    { timeoutMs: 400, url: stage.provider.url('/?forgets=1') },
    { onExpiredLease: 'unknown' },
  );
});
afterAll(() => stage?.clear());

const WAIT = { prefer: 'wait=30' };

describe('is tried again, with the same bytes under the same key, and has one effect', () => {
  const again: [string, Step][] = [
    ...[408, 409, 425, 429, 500, 501, 502, 503, 504, 302, 304].map((status): [string, Step] => [
      `a ${status}`,
      { status },
    ]),
    ['a 500 after it acted', { status: 500, acts: true }],
    ['a connection that is reset before it acted', { drop: true, acts: false }],
    ['a connection that is reset after it acted', { drop: true, acts: true }],
    ['a time-out before it acted', { waitBeforeMs: 700 }],
    ['a time-out after it acted', { waitMs: 700 }],
  ];
  test.each(again)('after %s', async (what, step) => {
    const key = `again after ${what}`.replaceAll(' ', '-');
    const reply = await stage.decide(key, 'refund.pay', [step, {}], WAIT);
    expect([reply.status, reply.body.outcome?.status]).toEqual([201, 'applied']);
    const arrivals = stage.provider.arrivals(key);
    expect(arrivals).toHaveLength(2);
    expect(new Set(arrivals.map(({ body }) => body)).size).toBe(1);
    expect(stage.provider.effects(key)).toBe(1);
    expect(await dispositions(stage.database, key)).toEqual({ created: 1, completed: 1 });
  });
});

describe('is refused', () => {
  test.each([400, 401, 403, 404, 410, 422, 451])('by a %i, once and for good', async (status) => {
    const key = `refused-${status}`;
    const first = await stage.decide(key, 'refund.pay', [{ status, text: '{"secret":"of theirs"}' }, {}], WAIT);
    expect([first.status, first.headers.get('content-type')]).toEqual([
      409,
      expect.stringContaining('application/problem+json'),
    ]);
    expect(first.body).toMatchObject({ code: 'refused', reason: `downstream-${status}`, retryable: false, key });
    const again = await stage.decide(key, 'refund.pay', [{ status, text: '{"secret":"of theirs"}' }, {}]);
    expect([again.status, again.text, again.headers.get('idempotent-replayed')]).toEqual([409, first.text, 'true']);
    const { body } = await stage.orchestrator.get(`/v1/decisions/${first.body.decisionId}`);
    expect(body).toMatchObject({ state: 'completed', outcome: { status: 'refused', reason: `downstream-${status}` } });
    expect(stage.provider.arrivals(key)).toHaveLength(1);
  });
});

describe('Retry-After', () => {
  test('in seconds is waited for', async () => {
    await stage.decide('after-s', 'refund.pay', [{ status: 429, headers: { 'retry-after': '2' } }, {}], WAIT);
    expect(pauseBetween('after-s')).toBeGreaterThanOrEqual(1_990);
  });

  test('as a date is read by the clock of whoever sent it', async () => {
    const headers = { date: 'Fri, 01 Jan 1999 00:00:00 GMT', 'retry-after': 'Fri, 01 Jan 1999 00:00:02 GMT' };
    await stage.decide('after-date', 'refund.pay', [{ status: 503, headers }, {}], WAIT);
    expect(pauseBetween('after-date')).toBeGreaterThanOrEqual(1_990);
    expect(pauseBetween('after-date')).toBeLessThan(10_000);
  });

  test('is what a twin is told', async () => {
    const script = [{ status: 429, headers: { 'retry-after': '4' } }, {}];
    const { body } = await stage.decide('after-twin', 'refund.pay', script);
    while (stage.provider.arrivals('after-twin').length === 0) await pause(20);
    await pause(300);
    const twin = await stage.decide('after-twin', 'refund.pay', script, { prefer: 'wait=0' });
    expect(Number(twin.headers.get('retry-after'))).toBeGreaterThanOrEqual(3);
    expect(Number(twin.headers.get('retry-after'))).toBeLessThanOrEqual(4);
    await stage.settled(body.decisionId);
  });

  test('beyond the window ends it: the provider may have forgotten the key by then', async () => {
    await stage.act('refund.window', { idempotencyWindowSeconds: 2 });
    const reply = await stage.decide(
      'window',
      'refund.window',
      [{ status: 503, headers: { 'retry-after': '3' } }],
      WAIT,
    );
    expect([reply.status, reply.body.code]).toEqual([409, 'outcome-unknown']);
    expect(stage.provider.arrivals('window')).toHaveLength(1);
  });

  function pauseBetween(key: string): number {
    const [first, second] = stage.provider.arrivals(key);
    return (second?.at ?? 0) - (first?.at ?? 0);
  }
});

describe('after the last try', () => {
  test('is unknown if one of them may have had its effect; an admin resolves it', async () => {
    const reply = await stage.decide('thrice', 'refund.thrice', [{ status: 500, acts: true }], WAIT);
    expect(reply.status).toBe(409);
    expect(reply.body).toMatchObject({ code: 'outcome-unknown', state: 'unknown', retryable: false });
    expect(stage.provider.arrivals('thrice')).toHaveLength(3);
    const again = await stage.decide('thrice', 'refund.thrice', [{ status: 500, acts: true }]);
    expect([again.status, again.body.code]).toEqual([409, 'outcome-unknown']);
    expect(stage.provider.arrivals('thrice')).toHaveLength(3);

    const path = `/v1/decisions/${reply.body.decisionId}/resolution`;
    const resolved = await stage.admin.post(path, {
      outcome: { status: 'applied', result: { found: true }, externalRef: 're_1' },
    });
    expect([resolved.status, resolved.body.effect.externalRef]).toEqual([200, 're_1']);
    const replay = await stage.decide('thrice', 'refund.thrice', [{ status: 500, acts: true }]);
    expect([replay.status, replay.text]).toEqual([201, resolved.text]);
  });

  test('a release by an admin lets the next request run it anew', async () => {
    const script = [{ status: 500 }, { status: 500 }, { status: 500 }, {}];
    const reply = await stage.decide('released', 'refund.thrice', script, WAIT);
    const { decisionId } = reply.body;
    const released = await stage.admin.post(`/v1/decisions/${decisionId}/resolution`, {
      release: true,
      reason: 'not there',
    });
    expect(released.body).toEqual({ decisionId, state: 'failed' });
    const anew = await stage.decide('released', 'refund.thrice', script, WAIT);
    expect([anew.status, anew.body.decisionId]).toEqual([201, decisionId]);
    expect(stage.provider.arrivals('released')).toHaveLength(4);
  });

  test('is failed if surely none had an effect; what it held is free, and the next request runs it', async () => {
    await stage.act('refund.down', { maxAttempts: 2 }, { uniqueness: 'subject' });
    await stage.provider.down();
    const reply = await stage.decide('down', 'refund.down', [{}], WAIT);
    expect([reply.status, reply.body.state]).toEqual([202, 'failed']);
    expect((await stage.settled(reply.body.decisionId)).body).toMatchObject({ state: 'failed', outcome: null });
    expect(await stage.database.query('SELECT FROM hold')).toEqual([]);
    expect(await stage.database.query('SELECT FROM dispatch')).toEqual([]);
    await stage.provider.up();
    const anew = await stage.decide('down', 'refund.down', [{}], WAIT);
    expect([anew.status, anew.body.decisionId]).toEqual([201, reply.body.decisionId]);
    expect(await dispositions(stage.database, 'down')).toEqual({ created: 1, failed: 1, reclaimed: 1, completed: 1 });
  });

  test('is unknown if a try may have had an effect, though the last surely had none', async () => {
    await stage.act('refund.twice', { maxAttempts: 2 });
    const script = [{ status: 500, headers: { 'retry-after': '2' } }];
    const { body } = await stage.decide('then-down', 'refund.twice', script);
    while (stage.provider.arrivals('then-down').length === 0) await pause(20);
    await pause(200);
    await stage.provider.down();
    expect((await stage.settled(body.decisionId)).body.state).toBe('unknown');
    await stage.provider.up();
  });
});

describe('with onExpiredLease: unknown, for a provider that knows no keys', () => {
  test.each<[string, Step]>([
    ['a 500', { status: 500, acts: true }],
    ['a reset', { drop: true, acts: true }],
    ['a time-out', { waitMs: 700 }],
    ['a 429', { status: 429 }],
  ])('%s is never repeated', async (what, step) => {
    const key = `never after ${what}`.replaceAll(' ', '-');
    const reply = await stage.decide(key, 'refund.keyless', [step, {}], WAIT);
    expect([reply.status, reply.body.code]).toEqual([409, 'outcome-unknown']);
    await pause(500);
    expect(stage.provider.arrivals(key)).toHaveLength(1);
    expect(stage.provider.effects(key)).toBeLessThanOrEqual(1);
  });

  test('a refused connection is tried again: nothing can have arrived', async () => {
    await stage.provider.down();
    const { body } = await stage.decide('keyless-down', 'refund.keyless', [{}]);
    await pause(200);
    await stage.provider.up();
    expect((await stage.settled(body.decisionId)).body.state).toBe('completed');
    expect(stage.provider.effects('keyless-down')).toBe(1);
  });
});

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
