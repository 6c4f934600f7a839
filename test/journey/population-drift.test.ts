import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { populate } from '../../bench/population.mjs';
import { atOnce, claim } from '../support/leases.js';
import { inputs } from '../support/index.js';
import { NOWHERE, setDispatchStage, type DispatchStage } from '../support/dispatching.js';
import { shapesOf } from '../support/shapes.js';
import { putActions, until } from '../support/stage.js';

const TENANTS = ['birch', 'cedar'];
const APPLIED = { status: 'applied', result: { reference: 're_1' }, externalRef: 're_1' };
const REFUSED = { status: 'refused', reason: 'card-declined' };

let stage: DispatchStage;
beforeAll(async () => {
  stage = await setDispatchStage();
});
afterAll(() => stage?.clear());

const about = (id: string, action: string, more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> => ({
  inputs: inputs({
    action,
    subject: { type: 'case', id },
    params: { reference: id, reportingPeriod: '2026-Q3' },
    ...more,
  }),
});
/** The same content with no period in it. */
const plain = (id: string, action: string): Record<string, unknown> => about(id, action, { params: { reference: id } });

/** Everything that may come to a key that has an outcome. */
async function arriveAgain(body: Record<string, unknown>, key: string): Promise<void> {
  const { orchestrator } = stage;
  await orchestrator.decide({ ...body, evidence: { runId: 'r', stepId: 's' } }, key);
  await orchestrator.decide({ ...body, evidence: { runId: 'r', stepId: 's' }, note: 'another' }, key);
  await orchestrator.decide({ ...body, evidence: { runId: 'r', stepId: 's' } }, `${key}-again`);
}

async function decideHere(): Promise<void> {
  const evidence = { runId: 'r', stepId: 's' };
  await putActions(stage.admin, {
    'here.any': { execution: 'transactional' },
    'here.allow': { execution: 'transactional', sameContent: 'allow' },
    'here.once': { execution: 'transactional', uniqueness: 'subject' },
    'here.period': { execution: 'transactional', uniqueness: 'subject-and-period' },
    // An example's handler says no to what is no amount.
    'refund.create': { execution: 'transactional' },
  });
  const cases = [
    plain('h-1', 'here.any'),
    plain('h-2', 'here.allow'),
    plain('h-3', 'here.once'),
    about('h-4', 'here.period'),
  ];
  const rivals = [
    about('h-3', 'here.once', { params: { reference: 'rival' } }),
    about('h-4', 'here.period', { policyVersion: 'pol-8' }),
  ];
  const refused = about('h-5', 'refund.create', { params: { amount: 'ten' } });
  for (const [i, body] of [...cases, ...rivals, refused].entries()) {
    await stage.orchestrator.decide({ ...body, evidence }, `here-${i}`);
    await arriveAgain(body, `here-${i}`);
  }
}

async function decideByCaller(): Promise<void> {
  const { orchestrator } = stage;
  const evidence = { runId: 'r', stepId: 's' };
  await putActions(stage.admin, {
    'call.any': { execution: 'caller' },
    'call.brief': { execution: 'caller', leaseSeconds: 1 },
    'call.period': { execution: 'caller', uniqueness: 'subject-and-period' },
  });
  const begin = (body: Record<string, unknown>, key: string) => claim(orchestrator, { ...body, evidence }, key);
  const inFlight = plain('c-1', 'call.any');
  await (await begin(inFlight, 'call-1')).renew();
  await atOnce(orchestrator, { ...inFlight, evidence }, 'call-1');
  await atOnce(orchestrator, { ...inFlight, evidence, note: 'another' }, 'call-1');

  for (const [i, outcome] of [APPLIED, REFUSED].entries()) {
    const body = plain(`c-2-${i}`, 'call.any');
    const held = await begin(body, `call-2-${i}`);
    await held.complete(outcome);
    await held.renew();
    await arriveAgain(body, `call-2-${i}`);
    const brief = plain(`c-3-${i}`, 'call.brief');
    await begin(brief, `call-3-${i}`);
    const taken = await until(
      () => atOnce(orchestrator, { ...brief, evidence }, `call-3-${i}`),
      ({ status }) => status === 202,
    );
    await orchestrator.post(`/v1/decisions/${taken.body.decisionId}/completion`, {
      leaseToken: taken.body.lease.token,
      outcome,
    });
  }
  for (const effect of ['none', 'unknown'] as const) {
    const body = plain(`c-4-${effect}`, 'call.any');
    await (await begin(body, `call-4-${effect}`)).fail(effect);
    await orchestrator.decide({ ...body, evidence, note: 'another' }, `call-4-${effect}`);
    if (effect === 'unknown') await orchestrator.decide({ ...body, evidence }, `call-4-${effect}`);
  }
  await (await begin(about('c-5', 'call.period'), 'call-5')).complete(APPLIED);
  const loser = about('c-5', 'call.period', { policyVersion: 'pol-8' });
  await orchestrator.decide({ ...loser, evidence }, 'call-6');
  await arriveAgain(loser, 'call-6');
  await arriveAgain(about('c-5', 'call.period'), 'call-5');
}

async function decideByWorker(): Promise<void> {
  await stage.act('send.any');
  await stage.act('send.once', { maxAttempts: 1 });
  await stage.act('send.nowhere', { url: `http://${NOWHERE}/`, maxAttempts: 1 });
  const evidence = { runId: 'r', stepId: 's' };
  for (const [key, action, status] of [
    ['send-1', 'send.any', 200],
    ['send-2', 'send.any', 422],
    ['send-3', 'send.once', 500],
    ['send-4', 'send.nowhere', 200],
  ] as const) {
    const body = about(key, action, {
      params: { reference: key, script: [{ status, waitMs: key === 'send-1' ? 2_000 : 0 }] },
    });
    const queued = await stage.orchestrator.decide({ ...body, evidence }, key);
    // The second request is to find the first under way; what has failed by then would run again.
    if (key === 'send-1') await atOnce(stage.orchestrator, { ...body, evidence }, key);
    const { body: ended } = await stage.settled(queued.body.decisionId);
    if (ended.state === 'completed') await arriveAgain(body, key);
    else await stage.orchestrator.decide({ ...body, evidence, note: 'another' }, key);
    if (ended.state === 'unknown') await stage.orchestrator.decide({ ...body, evidence }, key);
  }
}

test('every row of a population is filled like a row that the service wrote', async () => {
  await decideHere();
  await decideByCaller();
  await decideByWorker();
  const client = new pg.Client({ connectionString: stage.database.url });
  await client.connect();
  try {
    await populate(client, { decisions: 6_000, seed: 17, tenants: TENANTS });
  } finally {
    await client.end();
  }
  const served = await shapesOf(stage.database, ['acme']);
  const made = await shapesOf(stage.database, TENANTS);
  // Of a twin that waited in vain for a transaction nothing but the arrival is known: a race that a story cannot arrange.
  const arranged = made.filter((shape) => !shape.startsWith('attempt, transactional, in_flight, in-flight: '));
  expect(arranged.filter((shape) => !served.includes(shape))).toEqual([]);
  expect(arranged.length).toBeGreaterThan(60);
});
