import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AttemptView, DecisionListRow } from '#ledger';
import { Random } from '../support/bad-case.js';
import type { Reply } from '../support/index.js';
import { claim, type Claim } from '../support/leases.js';
import { evidence, populate, POPULATION_ACTIONS, someDecision, type Population } from '../support/population.js';
import { someFilters } from '../support/questions.js';
import { exported, recordsOf, walked } from '../support/reading.js';
import { attemptsFor, decisionsFor, type Filters, type Records } from '../support/reading-model.js';
import { rounds } from '../support/rounds.js';
import { setStage, type Stage } from '../support/stage.js';

/** What may become of a decision while one walks: of a row that has changed, these no longer ask what they asked. */
const MOVING = [
  'state',
  'outcome',
  'reason',
  'externalRef',
  'recordedFrom',
  'recordedTo',
  'stepId',
  'runId',
  'credentialId',
];

let stage: Stage;
let population: Population;
beforeAll(async () => {
  stage = await setStage({ actions: POPULATION_ACTIONS });
  population = await populate(stage, new Random('walked through'), 100);
});
afterAll(() => stage?.clear());

/** Writers of every kind, until `work` is done: new decisions, claims, and outcomes and failures of what is in flight. */
async function whileWriting<T>(random: Random, work: () => Promise<T>): Promise<T> {
  const { orchestrator } = stage;
  const held: Claim[] = [...population.inFlight.splice(0)];
  let isOver = false;
  const inTurn = (): number => random.whole(0, 1_000_000_000);
  const writer = async (): Promise<void> => {
    while (!isOver) {
      const one = held.shift();
      const n = inTurn();
      await random.pick(
        () => orchestrator.decide(someDecision(random, n, 'note.add')),
        () =>
          orchestrator.post('/v1/decisions/batch', {
            decisions: [1, 2, 3].map((m) => someDecision(random, n + m, 'case.close')),
          }),
        async () => void held.push(await claim(orchestrator, someDecision(random, n, 'call.out'), `late-${n}`)),
        async () => one?.complete({ status: 'applied', result: {}, externalRef: 'ref-1' }),
        async () => one?.complete({ status: 'refused', reason: 'limit' }),
        async () => one?.fail(random.pick('none', 'unknown')),
        async () => one?.renew(),
      )();
      await sleep(5);
    }
  };
  const writers = [writer(), writer(), writer()];
  const result = await work().finally(() => (isOver = true));
  await Promise.all(writers);
  // What is still held, and something new, is in flight when the next walk begins.
  population.inFlight.push(...held);
  for (let more = 0; more < 5; more += 1)
    population.inFlight.push(
      await claim(
        orchestrator,
        { ...someDecision(random, inTurn(), 'call.out'), ...evidence(random) },
        `held-${inTurn()}`,
      ),
    );
  return result;
}

/** The ids that must be met: of what the filters held for when the walk began, all that they cannot have ceased to hold for. */
const mustBeMet = <Row>(
  model: readonly Row[],
  filters: Filters,
  isSettled: (row: Row) => boolean,
  idOf: (row: Row) => string,
): string[] => model.filter((row) => isSettled(row) || !MOVING.some((name) => name in filters)).map(idOf);

function expectOnce(filters: Filters, met: readonly string[], wanted: readonly string[]): void {
  const times = new Map<string, number>();
  for (const id of met) times.set(id, (times.get(id) ?? 0) + 1);
  expect([filters, [...times].filter(([, count]) => count > 1)]).toEqual([filters, []]);
  expect([filters, wanted.filter((id) => !times.has(id))]).toEqual([filters, []]);
}

const WALKS: Readonly<Record<string, (random: Random, records: Records, order: 'asc' | 'desc') => Promise<void>>> = {
  async decisions(random, records, order) {
    const filters = someFilters(random, records);
    const wanted = mustBeMet(
      decisionsFor(records, filters),
      filters,
      ({ state }) => state === 'completed',
      ({ decisionId }) => decisionId,
    );
    const rows = await whileWriting(random, () =>
      walked<DecisionListRow>(stage.auditor, '/v1/decisions', { ...filters, order }, () => random.pick(3, 7, 20)),
    );
    expectOnce(
      filters,
      rows.map(({ decisionId }) => decisionId),
      wanted,
    );
  },
  async attempts(random, records, order) {
    const filters = someFilters(random, records, true);
    const byId = new Map(records.decisions.map((row) => [row.decisionId, row]));
    const isSettled = ({ decisionId }: AttemptView): boolean => byId.get(decisionId ?? '')?.state === 'completed';
    const wanted = mustBeMet(attemptsFor(records, filters), filters, isSettled, ({ attemptId }) => attemptId);
    const rows = await whileWriting(random, () =>
      walked<AttemptView>(stage.auditor, '/v1/attempts', { ...filters, order }, () => random.pick(5, 11, 40)),
    );
    expectOnce(
      filters,
      rows.map(({ attemptId }) => attemptId),
      wanted,
    );
  },
  async 'ledger entries'(random, records, order) {
    const filters = someFilters(random, records);
    const wanted = decisionsFor(records, filters)
      .filter(({ state }) => state === 'completed')
      .map(({ decisionId }) => decisionId);
    const rows = await whileWriting(random, () =>
      walked<{ decisionId: string }>(stage.auditor, '/v1/ledger/entries', { ...filters, order }, () =>
        random.pick(3, 7, 20),
      ),
    );
    expectOnce(
      filters,
      rows.map(({ decisionId }) => decisionId),
      wanted,
    );
  },
  async 'an export, broken off and resumed'(random, records, order) {
    const filters = someFilters(random, records);
    const wanted = mustBeMet(
      decisionsFor(records, filters),
      filters,
      ({ state }) => state === 'completed',
      ({ decisionId }) => decisionId,
    );
    const ids = await whileWriting(random, async () => {
      const rows = await exported(stage.auditor, { ...filters, order });
      const kept = rows.slice(0, random.whole(0, rows.length));
      const last = kept.at(-1);
      if (last === undefined) return rows.map(({ decisionId }) => decisionId);
      await sleep(50);
      const rest = await exported(stage.auditor, { ...filters, order, cursor: last.cursor });
      return [...kept, ...rest].map(({ decisionId }) => decisionId);
    });
    expectOnce(filters, ids, wanted);
  },
};

test.each(Object.keys(WALKS))(
  'a walk through %s meets each row that was there at its start exactly once, whatever is written meanwhile',
  async (name) => {
    const random = new Random(name);
    for (let round = rounds(60); round > 0; round -= 1) {
      const records = await recordsOf(stage.auditor);
      await WALKS[name]?.(random, records, random.pick('asc', 'desc'));
    }
  },
);

test('a decision that gets its outcome in the middle of a walk keeps the place that it had', async () => {
  for (const order of ['asc', 'desc']) {
    const held: Claim[] = [];
    for (let n = 0; n < 6; n += 1)
      held.push(
        await claim(
          stage.orchestrator,
          someDecision(new Random(`${order}${n}`), n + 5_000, 'call.out'),
          `place-${order}-${n}`,
        ),
      );
    const before = (await walked<DecisionListRow>(stage.auditor, '/v1/decisions', { order })).map(
      ({ decisionId }) => decisionId,
    );
    const met: string[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const query = new URLSearchParams({ order, limit: '9', ...(cursor === '' ? {} : { cursor }) });
      const reply: Reply = await stage.auditor.get(`/v1/decisions?${query}`);
      met.push(...reply.body.items.map((row: DecisionListRow) => row.decisionId));
      cursor = reply.body.nextCursor;
      const one = held.shift();
      if (held.length % 2 === 0) await one?.complete({ status: 'applied', result: {} });
      else await one?.fail('none');
    }
    expect(met).toEqual(before);
  }
});
