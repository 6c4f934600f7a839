import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DecisionListRow } from '#ledger';
import { populate, POPULATION_ACTIONS } from '../support/population.js';
import { Random } from '../support/bad-case.js';
import { recordsOf, walked } from '../support/reading.js';
import { setStage, type Stage } from '../support/stage.js';

let stage: Stage;
beforeAll(async () => {
  stage = await setStage({ actions: POPULATION_ACTIONS, env: { WORKER: 'off' } });
  await populate(stage, new Random('copied'), 60);
});
afterAll(() => stage?.clear());

beforeEach(async () => {
  await stage.database.query(
    'INSERT INTO uncopied_entry SELECT tenant_id, decision_id, ledger_entry_id, recorded_in FROM recorded_decision',
  );
  await stage.database.query('DELETE FROM recorded_decision');
});

async function left(): Promise<number> {
  const [row] = await stage.database.query<{ n: number }>('SELECT count(*)::integer AS n FROM uncopied_entry');
  return row?.n ?? 0;
}

/** What the entries say, and what their copies say. */
const FROM_ENTRIES = `
  SELECT l.decision_id, l.ledger_entry_id, d.received_at, l.recorded_at, d.action, d.action_version, d.subject_type, d.subject_id, d.reporting_period,
         d.model_id, d.model_version, d.prompt_template_sha256, d.retrieval_snapshot_id, d.policy_version, l.outcome, l.reason, l.external_ref,
         l.xmin::text AS recorded_in
    FROM ledger_entry l JOIN decision_record d USING (tenant_id, decision_id) ORDER BY l.decision_id`;
const FROM_COPIES = `
  SELECT decision_id, ledger_entry_id, received_at, recorded_at, action, action_version, subject_type, subject_id, reporting_period,
         model_id, model_version, prompt_template_sha256, retrieval_snapshot_id, policy_version, outcome, reason, external_ref,
         recorded_in::text AS recorded_in
    FROM recorded_decision ORDER BY decision_id`;

test('the worker copies what was recorded, as it stands and with the transaction that recorded it, and no answer changes', async () => {
  const before = await recordsOf(stage.auditor);
  const counts = '/v1/attempts/count?groupBy=outcome,reason,state,action';
  const countedBefore = (await stage.auditor.get(counts)).text;
  expect(await left()).toBeGreaterThan(20);
  expect(await stage.database.query(FROM_COPIES)).toEqual([]);

  const worker = await stage.addService({ WORKER: 'only' });
  while ((await left()) > 0) await sleep(20);
  await worker.stop();

  expect(await stage.database.query(FROM_COPIES)).toEqual(await stage.database.query(FROM_ENTRIES));
  expect(await recordsOf(stage.auditor)).toEqual(before);
  expect((await stage.auditor.get(counts)).text).toBe(countedBefore);
});

test('several copiers at once copy each entry once', async () => {
  const recorded = await left();
  const copied = await Promise.all(
    Array.from({ length: 8 }, async () => {
      let total = 0;
      for (let most = 1; most > 0; total += most) {
        const [row] = await stage.database.query<{ most: number }>(`SELECT copy_recorded('{acme}', 3) AS most`);
        most = row?.most ?? 0;
      }
      return total;
    }),
  );
  // One that finds everything held by others stops early; what it left is copied by them.
  await stage.database.query(`SELECT copy_recorded('{acme}', 100)`);
  expect(await left()).toBe(0);
  expect(copied.reduce((sum, n) => sum + n, 0)).toBeLessThanOrEqual(recorded);
  expect(await stage.database.query(FROM_COPIES)).toEqual(await stage.database.query(FROM_ENTRIES));
});

test.each(['asc', 'desc'])(
  'a walk meets each decision once while they are copied between its pages, %s',
  async (order) => {
    const all = await walked<DecisionListRow>(stage.auditor, '/v1/decisions', { order });
    const copies: Promise<unknown>[] = [];
    const rows = await walked<DecisionListRow>(stage.auditor, '/v1/decisions', { order }, () => {
      copies.push(stage.database.query(`SELECT copy_recorded('{acme}', 5)`));
      return 7;
    });
    await Promise.all(copies);
    expect(rows).toEqual(all);
    expect(await left()).toBeLessThan(all.length - rows.length / 7);
  },
);
