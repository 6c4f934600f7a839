import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ATTEMPT_GROUP_NAMES, DECISION_GROUP_NAMES, type AttemptView, type DecisionListRow } from '#ledger';
import { Random } from '../support/bad-case.js';
import { populate, POPULATION_ACTIONS } from '../support/population.js';
import { exported, recordsOf, walked } from '../support/reading.js';
import {
  attemptsFor,
  by,
  DECISION_FACTS,
  decisionsFor,
  factOf,
  groupsOfAttempts,
  groupsOfDecisions,
  groupText,
  type Filters,
  type Records,
} from '../support/reading-model.js';
import { someFilters } from '../support/questions.js';
import { rounds } from '../support/rounds.js';
import { setStage, type Stage } from '../support/stage.js';

let stage: Stage;
let records: Records;
beforeAll(async () => {
  // No worker: a part of what was recorded is copied here, and the rest is read from where it was recorded.
  stage = await setStage({ actions: POPULATION_ACTIONS, env: { WORKER: 'off' } });
  await populate(stage, new Random('population'), 150);
  await stage.database.query(`SELECT copy_recorded('{acme}', 50)`);
  records = await recordsOf(stage.auditor);
});
afterAll(() => stage?.clear());

const someNames = (random: Random, names: readonly string[]): string[] => [
  ...new Set(Array.from({ length: random.whole(1, 3) }, () => random.pick(...names))),
];

const ids = (rows: readonly { readonly decisionId: string | null }[]): (string | null)[] =>
  rows.map(({ decisionId }) => decisionId);
const attemptIds = (rows: readonly AttemptView[]): string[] => rows.map(({ attemptId }) => attemptId);

async function counted(
  path: string,
  filters: Filters,
  names: readonly string[],
): Promise<{ total: number; groups: string[]; sum: number }> {
  const query = new URLSearchParams({ ...filters, ...(names.length === 0 ? {} : { groupBy: names.join(',') }) });
  const { status, body, text } = await stage.auditor.get(`${path}/count?${query}`);
  if (status !== 200) throw new Error(text);
  const groups: Record<string, unknown>[] = body.groups;
  return {
    total: body.total,
    groups: groups
      .map((group) =>
        groupText(
          names.map((name) => group[name]),
          group['count'],
        ),
      )
      .toSorted(),
    sum: groups.reduce((sum, { count }) => sum + Number(count), 0),
  };
}

test('what is listed without a filter is all that was recorded', async () => {
  const inDatabase = async (table: string, id: string): Promise<string[]> => {
    const rows = await stage.database.query<{ id: string }>(
      `SELECT ${id} AS id FROM ${table} WHERE tenant_id = 'acme'`,
    );
    return rows.map((row) => row.id).toSorted();
  };
  expect(ids(records.decisions).toSorted()).toEqual(await inDatabase('decision_record', 'decision_id'));
  expect(attemptIds(records.attempts).toSorted()).toEqual(await inDatabase('attempt', 'attempt_id'));
  expect(new Set(records.decisions.map(({ state }) => state))).toEqual(
    new Set(['in_flight', 'completed', 'failed', 'unknown']),
  );
});

describe('on a quiet moment, for random filters, pages and orders', () => {
  test('list, count, groups, export and entries of decisions are those of the model', async () => {
    const random = new Random('decisions');
    for (let round = rounds(400); round > 0; round -= 1) {
      const filters = someFilters(random, records);
      const order = random.pick('asc', 'desc');
      const limit = (): number => random.pick(1, 2, 7, 50, 500);
      const model = decisionsFor(records, filters);
      const inOrder = order === 'asc' ? model : model.toReversed();
      const few = model.length > 40 ? (): number => random.pick(23, 50, 500) : limit;
      expect([
        filters,
        ids(await walked<DecisionListRow>(stage.auditor, '/v1/decisions', { ...filters, order }, few)),
      ]).toEqual([filters, ids(inOrder)]);
      const rows = await exported(stage.auditor, { ...filters, order });
      expect([filters, ids(rows)]).toEqual([filters, ids(inOrder)]);
      expect(rows.map((row) => factsOf(row))).toEqual(inOrder.map((row) => factsOf(row)));
      const entries = await walked<{ decisionId: string }>(
        stage.auditor,
        '/v1/ledger/entries',
        { ...filters, order },
        few,
      );
      const recorded = model
        .filter(({ ledgerEntryId }) => ledgerEntryId !== null)
        .toSorted(by(({ recordedAt, ledgerEntryId }) => `${recordedAt} ${ledgerEntryId}`));
      expect([filters, ids(entries)]).toEqual([filters, ids(order === 'asc' ? recorded : recorded.toReversed())]);
      const names = someNames(random, DECISION_GROUP_NAMES);
      const count = await counted('/v1/decisions', filters, names);
      expect([filters, names, count]).toEqual([
        filters,
        names,
        { total: model.length, groups: groupsOfDecisions(model, names), sum: model.length },
      ]);
      expect((await counted('/v1/decisions', filters, [])).total).toBe(model.length);
    }
  });

  test('list, count and groups of attempts are those of the model', async () => {
    const random = new Random('attempts');
    for (let round = rounds(400); round > 0; round -= 1) {
      const filters = someFilters(random, records, true);
      const order = random.pick('asc', 'desc');
      const model = attemptsFor(records, filters);
      const inOrder = order === 'asc' ? model : model.toReversed();
      const limit = (): number => (model.length > 40 ? random.pick(23, 50, 500) : random.pick(1, 2, 7, 50, 500));
      expect([
        filters,
        attemptIds(await walked<AttemptView>(stage.auditor, '/v1/attempts', { ...filters, order }, limit)),
      ]).toEqual([filters, attemptIds(inOrder)]);
      const names = someNames(random, ATTEMPT_GROUP_NAMES);
      expect([filters, names, await counted('/v1/attempts', filters, names)]).toEqual([
        filters,
        names,
        { total: model.length, groups: groupsOfAttempts(records, model, names), sum: model.length },
      ]);
      expect((await counted('/v1/attempts', filters, [])).total).toBe(model.length);
    }
  });

  test('a filter that is added never widens an answer', async () => {
    const random = new Random('subsets');
    for (let round = rounds(300); round > 0; round -= 1) {
      const isOfAttempts = random.pick(true, false);
      const [filters, more] = [someFilters(random, records, isOfAttempts), someFilters(random, records, isOfAttempts)];
      const path = isOfAttempts ? '/v1/attempts' : random.pick('/v1/decisions', '/v1/ledger/entries');
      const idsFor = async (query: Filters): Promise<string[]> =>
        (await walked<Record<string, string>>(stage.auditor, path, query)).map(
          (row) => row['attemptId'] ?? row['decisionId'] ?? '',
        );
      const wide = new Set(await idsFor(filters));
      const narrow = await idsFor({ ...more, ...filters });
      expect([filters, more, narrow.filter((id) => !wide.has(id))]).toEqual([filters, more, []]);
    }
  });
});

const factsOf = (row: DecisionListRow): readonly (string | null)[] => [
  ...DECISION_FACTS.map((name) => factOf(row, name)),
  row.receivedAt,
  row.recordedAt,
  row.effectId,
];
