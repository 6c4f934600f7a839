import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { dispositions } from '../support/audit.js';
import { setDispatchStage, type DispatchStage } from '../support/dispatching.js';
import type { Service } from '../support/index.js';
import { until } from '../support/stage.js';

const LEASE_SECONDS = 2;
const WORKER_ONLY = { WORKER: 'only', LOG_LEVEL: 'info' };

let stage: DispatchStage;
let worker: Service;
beforeAll(async () => {
  stage = await setDispatchStage({ WORKER: 'off' });
  await stage.act('refund.pay', {}, { leaseSeconds: LEASE_SECONDS });
  await stage.act(
    'refund.keyless',
    { url: stage.provider.url('/?forgets=1') },
    { leaseSeconds: LEASE_SECONDS, onExpiredLease: 'unknown' },
  );
});
beforeEach(async () => {
  worker = await stage.addService(WORKER_ONLY);
});
afterAll(() => stage?.clear());

const arrived = (key: string, times = 1): Promise<number> =>
  until(
    async () => stage.provider.arrivals(key).length,
    (count) => count >= times,
    15_000,
  );

describe('a worker that is killed in the middle of a call', () => {
  test('is taken over within one lease; a provider that knows keys has one effect', async () => {
    const { body } = await stage.decide('killed', 'refund.pay', [{ waitMs: 1_500 }, {}]);
    await arrived('killed');
    await worker.kill();
    const successor = await stage.addService(WORKER_ONLY);
    const startedAt = performance.now();
    expect((await stage.settled(body.decisionId)).body.state).toBe('completed');
    expect(performance.now() - startedAt).toBeLessThan(LEASE_SECONDS * 1_000 + 1_500);
    expect([stage.provider.arrivals('killed').length, stage.provider.effects('killed')]).toEqual([2, 1]);
    expect(await dispositions(stage.database, 'killed')).toEqual({ created: 1, completed: 1 });
    await successor.stop();
  });

  test('leaves what a provider without keys was asked for unknown: it is not asked again', async () => {
    const { body } = await stage.decide('keyless', 'refund.keyless', [{ waitMs: 1_500 }, {}]);
    await arrived('keyless');
    await worker.kill();
    const successor = await stage.addService(WORKER_ONLY);
    expect((await stage.settled(body.decisionId)).body.state).toBe('unknown');
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect([stage.provider.arrivals('keyless').length, stage.provider.effects('keyless')]).toEqual([1, 1]);
    expect(await dispositions(stage.database, 'keyless')).toEqual({ created: 1, unknown: 1 });
    await successor.stop();
  });

  test('again and again is not tried for ever: after five it is unknown', async () => {
    await stage.act('refund.crashes', { maxAttempts: 50 }, { leaseSeconds: 1 });
    const { body } = await stage.decide('crashes', 'refund.crashes', [{ waitMs: 60_000 }]);
    for (let kills = 1; kills <= 6; kills += 1) {
      await arrived('crashes', kills);
      await worker.kill();
      worker = await stage.addService(WORKER_ONLY);
    }
    expect((await stage.settled(body.decisionId)).body.state).toBe('unknown');
    expect(stage.provider.arrivals('crashes')).toHaveLength(6);
    await worker.stop();
  }, 120_000);
});

describe('a worker that stands still', () => {
  test('keeps the lease of a long call while it lives', async () => {
    const second = await stage.addService(WORKER_ONLY);
    const { body } = await stage.decide('long', 'refund.pay', [{ waitMs: 5_500 }]);
    expect((await stage.settled(body.decisionId)).body.state).toBe('completed');
    expect(stage.provider.arrivals('long')).toHaveLength(1);
    await Promise.all([worker.stop(), second.stop()]);
  });

  test('has lost the lease when it wakes up: its report changes nothing', async () => {
    const { body } = await stage.decide('asleep', 'refund.pay', [
      { waitMs: 500, text: '"first"' },
      { text: '"second"' },
    ]);
    await arrived('asleep');
    worker.signal('SIGSTOP');
    const successor = await stage.addService(WORKER_ONLY);
    const settled = await stage.settled(body.decisionId);
    expect(settled.body.effect.result).toBe('second');
    worker.signal('SIGCONT');
    await until(
      async () => worker.output(),
      (output) => output.includes('"state":"lease_lost"'),
      10_000,
    );
    expect((await stage.orchestrator.get(`/v1/decisions/${body.decisionId}`)).body.effect.result).toBe('second');
    expect(await dispositions(stage.database, 'asleep')).toMatchObject({ created: 1, completed: 1, lease_lost: 1 });
    await Promise.all([worker.stop(), successor.stop()]);
  });

  test('can still end what became unknown meanwhile, if nobody resolved it: it has seen the answer', async () => {
    const { body } = await stage.decide('seen', 'refund.keyless', [{ waitMs: 500 }]);
    await arrived('seen');
    worker.signal('SIGSTOP');
    const successor = await stage.addService(WORKER_ONLY);
    expect((await stage.settled(body.decisionId)).body.state).toBe('unknown');
    worker.signal('SIGCONT');
    const ended = await until(
      () => stage.orchestrator.get(`/v1/decisions/${body.decisionId}`),
      (reply) => reply.body.state === 'completed',
    );
    expect(ended.body.state).toBe('completed');
    expect(stage.provider.effects('seen')).toBe(1);
    await Promise.all([worker.stop(), successor.stop()]);
  });
});

test('a stop lets the call under way end', async () => {
  const { body } = await stage.decide('stop', 'refund.pay', [{ waitMs: 1_500 }]);
  await arrived('stop');
  expect(await worker.stop()).toBe(0);
  expect((await stage.orchestrator.get(`/v1/decisions/${body.decisionId}`)).body.state).toBe('completed');
  expect(stage.provider.arrivals('stop')).toHaveLength(1);
});

test('a stop cuts off a call that takes too long, and another worker goes on at once', async () => {
  await stage.act('refund.endless', { timeoutMs: 60_000 }, { leaseSeconds: 60 });
  const { body } = await stage.decide('cut', 'refund.endless', [{ waitBeforeMs: 50_000, acts: false }, {}]);
  await arrived('cut');
  const startedAt = performance.now();
  expect(await worker.stop()).toBe(0);
  expect(performance.now() - startedAt).toBeLessThan(18_000);
  const successor = await stage.addService(WORKER_ONLY);
  expect((await stage.settled(body.decisionId)).body.state).toBe('completed');
  expect([stage.provider.arrivals('cut').length, stage.provider.effects('cut')]).toEqual([2, 1]);
  await successor.stop();
});
