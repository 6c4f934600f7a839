import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { request, setDispatchStage, settled, type DispatchStage } from '../support/dispatching.js';
import { dispositions } from '../support/audit.js';
import { rounds } from '../support/rounds.js';
import { Client, type Reply, type Service } from '../support/index.js';
import { startProvider, type Provider, type Step } from '../support/provider.js';
import { putActions } from '../support/stage.js';

/** An API without a worker, and two workers without an API. */
let stage: DispatchStage;
let other: Provider;
const workers: Service[] = [];
beforeAll(async () => {
  other = await startProvider();
  stage = await setDispatchStage({ WORKER: 'off' });
  const env = { WORKER: 'only', DISPATCH_ALLOWED_HOSTS: `${stage.provider.host},${other.host}` };
  for (let n = 0; n < 2; n += 1) workers.push(await stage.addService(env));
  await stage.act('refund.pay', { timeoutMs: 1_000 }, { leaseSeconds: 2 });
});
afterAll(async () => {
  await stage?.clear();
  await other?.close();
});

const decisions = Array.from({ length: Math.max(40, rounds(300)) }, (_, n) => n);

describe('two workers on one queue', () => {
  test('never make the same call at the same time, and each decision has one effect', async () => {
    const steps: Step[][] = [
      [{ waitMs: 60 }],
      [{ status: 500, acts: true }, {}],
      [{ drop: true, acts: true }, { waitMs: 30 }],
    ];
    const replies = await Promise.all(
      decisions.map((n) => stage.decide(`two-${n}`, 'refund.pay', steps[n % steps.length] ?? [])),
    );
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([202]));
    for (const { body } of replies) expect((await stage.settled(body.decisionId, 60_000)).body.state).toBe('completed');
    const arrivals = stage.provider.arrivals();
    expect(arrivals.filter(({ overlaps }) => overlaps)).toEqual([]);
    for (const n of decisions) {
      expect([n, stage.provider.effects(`two-${n}`)]).toEqual([n, 1]);
      expect([n, stage.provider.arrivals(`two-${n}`).length]).toEqual([n, n % steps.length === 0 ? 1 : 2]);
    }
    expect(await stage.database.query('SELECT FROM dispatch')).toEqual([]);
    expect(await dispositions(stage.database, 'two-0')).toEqual({ created: 1, completed: 1 });
  });

  test('callers with the same key at once make one call', async () => {
    const ask = (): Promise<Reply> => stage.decide('storm', 'refund.pay', [{ waitMs: 200 }], { prefer: 'wait=20' });
    const replies = await Promise.all(Array.from({ length: 20 }, ask));
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([201]));
    expect(new Set(replies.map(({ text }) => text)).size).toBe(1);
    expect(stage.provider.arrivals('storm')).toHaveLength(1);
  });

  test('a host that does not answer does not hold up the others', async () => {
    await stage.act('refund.dead', { timeoutMs: 1_500, maxAttempts: 50, url: stage.provider.url('/dead') });
    const api = await stage.addService({ WORKER: 'off', DISPATCH_ALLOWED_HOSTS: other.host });
    const admin = new Client(api.url, stage.tokens.admin);
    await putActions(admin, { 'note.send': { execution: 'dispatched', dispatch: { url: other.url() } } });
    const dead = Array.from({ length: 60 }, (_, n) => n);
    await Promise.all(dead.map((n) => stage.decide(`dead-${n}`, 'refund.dead', [{ waitBeforeMs: 60_000 }])));
    const startedAt = performance.now();
    const replies = await Promise.all(
      [0, 1, 2, 3, 4].map((n) => stage.orchestrator.decide(request(`live-${n}`, 'note.send'), `live-${n}`)),
    );
    for (const { body } of replies)
      expect((await settled(stage.orchestrator, body.decisionId)).body.state).toBe('completed');
    // Sixty calls of 1.5 s, sixteen at a time in each worker, would be in the way for longer than this.
    expect(performance.now() - startedAt).toBeLessThan(2_500);
  });
});
