import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { inputs, type Reply } from '../support/index.js';
import { setStage, TRANSACTIONAL, type Stage } from '../support/stage.js';

/** Requests that arrive while statements are under way are recorded together. Nobody fails for a neighbour, and nobody starves. */

const QUEUE = 40;
const PATIENT = { prefer: 'wait=30' };

let stage: Stage;
beforeAll(async () => {
  stage = await setStage({
    env: { MAX_QUEUED_DECISIONS: String(QUEUE) },
    actions: { 'note.add': TRANSACTIONAL, 'case.close': { ...TRANSACTIONAL, uniqueness: 'subject' } },
  });
});
afterAll(() => stage?.clear());

const about = (id: string, action = 'note.add'): Record<string, unknown> => ({
  inputs: inputs({ action, subject: { type: 'case', id } }),
});

/** Several requests at once, each for a subject of its own. */
const decideAll = (subjects: readonly string[], action?: string): Promise<Reply[]> =>
  Promise.all(subjects.map((id) => stage.orchestrator.decide(about(id, action))));

const numbered = (name: string, count: number): string[] => Array.from({ length: count }, (_, n) => `${name}-${n}`);

const entriesAbout = (like: string): Promise<number> =>
  stage.database.count(
    `SELECT count(*) FROM ledger_entry JOIN decision_record USING (tenant_id, decision_id) WHERE subject_id LIKE $1`,
    [like],
  );

test('of those that are recorded together one breaks a constraint: it alone fails, and leaves nothing', async () => {
  await stage.database.query(`ALTER TABLE decision_record ADD CONSTRAINT poisoned CHECK (subject_id <> 'poison')`);
  const replies = await decideAll([...numbered('a', 12), 'poison', ...numbered('b', 12)]);
  const poisoned = replies.splice(12, 1)[0];

  expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 201));
  expect([poisoned?.status, poisoned?.body.code]).toEqual([500, 'internal']);
  expect(await entriesAbout('poison')).toBe(0);
  expect(await stage.database.count(`SELECT count(*) FROM idempotency_record WHERE status <> 'completed'`)).toBe(0);

  await stage.database.query('ALTER TABLE decision_record DROP CONSTRAINT poisoned');
  expect((await stage.orchestrator.decide(about('poison'))).status).toBe(201);
});

test('of those that are recorded together one is refused: it alone is', async () => {
  await stage.orchestrator.decide(about('taken', 'case.close'));
  const again = {
    inputs: { ...inputs({ action: 'case.close', subject: { type: 'case', id: 'taken' } }), params: { n: 2 } },
  };
  const [refused, ...others] = await Promise.all([
    stage.orchestrator.decide(again),
    ...numbered('c', 20).map((id) => stage.orchestrator.decide(about(id, 'case.close'))),
  ]);
  expect([refused?.status, refused?.body.code]).toEqual([409, 'duplicate-subject']);
  expect(others.map(({ status }) => status)).toEqual(others.map(() => 201));
});

test('the connection breaks under those that are recorded together: each is told so or recorded, and sent again ends in one', async () => {
  const subjects = numbered('d', QUEUE);
  let ended = 0;
  for (let round = 0; round < 5; round += 1) {
    const waiting = decideAll(subjects.map((id) => `${id}-${round}`));
    let isOver = false;
    void waiting.then(() => (isOver = true));
    for (const before = ended; ended === before && !isOver;)
      ended += await stage.database.count(
        `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
          WHERE datname = current_database() AND query LIKE 'SELECT * FROM record_decisions%' AND state <> 'idle'`,
      );
    for (const { status, body, text } of await waiting)
      if (status !== 201) expect([status, body.code, body.retryable, text]).toEqual([503, 'unavailable', true, text]);
    const after = await decideAll(subjects.map((id) => `${id}-${round}`));
    expect(after.map(({ status }) => status)).toEqual(after.map(() => 201));
    expect(await entriesAbout(`d-%-${round}`)).toBe(QUEUE);
  }
  expect(ended).toBeGreaterThan(0);
});

/** Keeps every statement that records from going on. */
async function heldUp<T>(work: () => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: stage.database.url });
  await client.connect();
  try {
    await client.query(`BEGIN; LOCK TABLE effect IN ACCESS EXCLUSIVE MODE`);
    return await work();
  } finally {
    await client.end();
  }
}

test('more than may wait are sent away at once, with nothing recorded and nothing lost; another tenant is not', async () => {
  const other = await stage.addTenant('birch');
  await other.admin.put('/v1/actions/note.add', TRANSACTIONAL);
  const subjects = numbered('e', 3 * QUEUE);
  const { waiting, sentAway, others } = await heldUp(async () => {
    let refused = 0;
    const waiting = Promise.all(
      subjects.map(async (id) => {
        const reply = await stage.orchestrator.post('/v1/decisions', about(id), PATIENT);
        if (reply.status === 503) refused += 1;
        return reply;
      }),
    );
    while (refused < subjects.length - QUEUE) await sleep(5);
    const sentAway = await stage.orchestrator.decide(about('late'));
    const others = other.orchestrator.post('/v1/decisions', about('other'), PATIENT);
    await sleep(50);
    return { waiting, sentAway, others };
  });

  expect([sentAway.status, sentAway.body.code, sentAway.body.retryable]).toEqual([503, 'unavailable', true]);
  expect(sentAway.headers.get('retry-after')).toBe('1');
  expect((await others).status).toBe(201);
  const replies = await waiting;
  const refused = subjects.filter((_, n) => replies[n]?.status === 503);
  expect(replies.filter(({ status }) => status !== 201 && status !== 503)).toEqual([]);
  expect(refused.length).toBe(subjects.length - QUEUE);
  expect(await entriesAbout('e-%')).toBe(subjects.length - refused.length);
  expect(await entriesAbout('late')).toBe(0);

  for (const id of [...refused, 'late']) expect((await stage.orchestrator.decide(about(id))).status).toBe(201);
  expect(await entriesAbout('e-%')).toBe(subjects.length);
});

test('the storm of one tenant leaves the others their turn', async () => {
  const quiet = await stage.addTenant('cedar');
  await quiet.admin.put('/v1/actions/note.add', TRANSACTIONAL);
  let isOver = false;
  let stormy = 0;
  const storm = Array.from({ length: QUEUE }, async (_, lane) => {
    for (let n = 0; !isOver; n += 1) {
      await stage.orchestrator.decide(about(`f-${lane}-${n}`));
      stormy += 1;
    }
  });
  await sleep(200);
  const before = stormy;
  const QUIET = 30;
  for (let n = 0; n < QUIET; n += 1) expect((await quiet.orchestrator.decide(about(`g-${n}`))).status).toBe(201);
  const during = stormy - before;
  isOver = true;
  await Promise.all(storm);

  // One that asks 40 at a time is not served 40 times more often than one that asks once at a time: both wait for a statement.
  expect(during).toBeGreaterThan(0);
  expect(during / QUIET).toBeLessThan(2 * QUEUE);
});
