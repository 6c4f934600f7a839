import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import type { AttemptView } from '#ledger';
import { populate } from '../../bench/population.mjs';
import { Random } from '../support/bad-case.js';
import { walked, recordsOf } from '../support/reading.js';
import {
  attemptsFor,
  groupsOfAttempts,
  groupText,
  microseconds,
  type Filters,
  type Records,
} from '../support/reading-model.js';
import { IS_LONG, rounds } from '../support/rounds.js';
import { setStage, type Cast, type Stage } from '../support/stage.js';

/** So many that each way to find attempts is taken: what is fewer than some thousands is found in one way. */
const DECISIONS = 20_000;
/** Requests that came again when the decisions of their time were long past. */
const LATE = 120;

let stage: Stage;
let tenant: Cast;
let records: Records;
beforeAll(async () => {
  stage = await setStage({ env: { WORKER: 'off' } });
  tenant = await stage.addTenant('birch');
  const client = new pg.Client({ connectionString: stage.database.url });
  await client.connect();
  await populate(client, { decisions: DECISIONS, tenants: ['birch'] });
  await client.query(
    `INSERT INTO attempt (tenant_id, attempt_id, idem_key, decision_id, action, disposition, won, evidence, request_id, credential_id, received_at, latency_ms)
     SELECT a.tenant_id, overlay(a.attempt_id::text PLACING '0' FROM 36)::uuid, a.idem_key, a.decision_id, a.action, 'replayed', false, a.evidence, a.request_id,
            a.credential_id, date_trunc('day', now()) + make_interval(secs => row_number() OVER (ORDER BY a.attempt_id)), 1
       FROM (SELECT * FROM attempt WHERE disposition = 'created' AND right(attempt_id::text, 1) <> '0' ORDER BY md5(attempt_id::text) LIMIT ${LATE}) a`,
  );
  await client.end();
  records = await recordsOf(tenant.auditor);
});
afterAll(() => stage?.clear());

const idsOf = (rows: readonly AttemptView[]): string[] => rows.map(({ attemptId }) => attemptId);

/** The value that most attempts have that some other filters hold for. */
function commonest(filters: Filters, valueOf: (row: AttemptView) => unknown): string {
  const counts = new Map<string, number>();
  for (const row of attemptsFor(records, filters)) {
    const value = valueOf(row);
    if (typeof value === 'string') counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  const [most] = [...counts].toSorted(([, a], [, b]) => b - a);
  return most?.[0] ?? '';
}

const QUESTIONS: readonly (readonly [name: string, filters: () => Filters])[] = [
  ['few decisions', () => ({ policyVersion: policy(), modelId: 'claims-small' })],
  ['a quarter of a year', () => ({ policyVersion: policy() })],
  ['few attempts', () => ({ action: 'payment.send', disposition: 'lease_lost' })],
  ['near at hand', () => ({ action: 'refund.issue' })],
  ['near at hand, of a credential', () => ({ action: 'refund.issue', credentialId: credential() })],
  ['the first third of all time', () => ({ actionVersion: '1' })],
  ['the second third', () => ({ actionVersion: '2' })],
  ['the last third', () => ({ actionVersion: '3' })],
  ['a third, by what became of them', () => ({ actionVersion: '2', disposition: 'replayed' })],
  ['a third, of a credential', () => ({ actionVersion: '1', credentialId: credential() })],
  ['a third, of a step that many have', () => ({ actionVersion: '2', stepId: step() })],
  ['a third, of one model', () => ({ actionVersion: '3', modelId: 'claims-large' })],
  ['a third, what has no outcome', () => ({ actionVersion: '1', state: 'unknown' })],
  ['a third, within another', () => ({ actionVersion: '1', recordedFrom: laterThan(0.6) })],
  ['many of both, that do not go together', () => ({ action: 'refund.issue', disposition: 'completed' })],
  ['many decisions of a third, and none of their attempts', () => ({ actionVersion: '3', recordedTo: laterThan(0.5) })],
];

const policy = (): string => records.decisions[Math.floor(records.decisions.length / 2)]?.policyVersion ?? '';
const credential = (): string => commonest({ disposition: 'created' }, ({ credentialId }) => credentialId);
const step = (): string => commonest({}, ({ evidence }) => evidence?.['stepId']);
const laterThan = (share: number): string =>
  records.attempts[Math.floor(records.attempts.length * share)]?.receivedAt ?? '';

test.each(QUESTIONS)('attempts of %s are those of the model, page by page in both orders', async (_name, filtersOf) => {
  const filters = filtersOf();
  const model = attemptsFor(records, filters);
  for (const order of ['asc', 'desc'] as const) {
    const inOrder = order === 'asc' ? model : model.toReversed();
    const random = new Random(`${JSON.stringify(filters)} ${order}`);
    const pages = await firstPages(filters, order, () => random.pick(1, 7, 50, 200), rounds(100));
    expect(idsOf(pages)).toEqual(idsOf(inOrder).slice(0, pages.length));
    if (IS_LONG)
      expect(idsOf(await walked(tenant.auditor, '/v1/attempts', { ...filters, order }))).toEqual(idsOf(inOrder));
  }
});

/** As many pages from the first on. */
async function firstPages(filters: Filters, order: string, limit: () => number, most: number): Promise<AttemptView[]> {
  const rows: AttemptView[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < most; page += 1) {
    const query: Filters = { ...filters, order, limit: String(limit()), ...(cursor === null ? {} : { cursor }) };
    const { body } = await tenant.auditor.get(`/v1/attempts?${new URLSearchParams(query)}`);
    rows.push(...body.items);
    cursor = body.nextCursor;
    if (cursor === null) break;
  }
  return rows;
}

test.each(['disposition', 'action,disposition', 'state,outcome,month', 'credentialId,actionVersion'])(
  'a quarter of them, counted by %s, is that of the model',
  async (groupBy) => {
    const quarter = { recordedFrom: laterThan(0.3), recordedTo: laterThan(0.42) };
    const model = attemptsFor(records, quarter);
    const names = groupBy.split(',');
    const { body } = await tenant.auditor.get(`/v1/attempts/count?${new URLSearchParams({ ...quarter, groupBy })}`);
    const groups: Record<string, unknown>[] = body.groups;
    expect(body.total).toBe(model.length);
    expect(
      groups
        .map((group) =>
          groupText(
            names.map((name) => group[name]),
            group['count'],
          ),
        )
        .toSorted(),
    ).toEqual(groupsOfAttempts(records, model, names));
  },
);

test('some arrived long after the decisions of their time', () => {
  const recordedAt = new Map(records.decisions.map((row) => [row.decisionId, row.recordedAt ?? row.receivedAt]));
  const late = records.attempts.filter(
    ({ decisionId, receivedAt }) =>
      microseconds(receivedAt) - microseconds(recordedAt.get(decisionId ?? '') ?? receivedAt) >
      90n * 86_400n * 1_000_000n,
  );
  expect(late.length).toBeGreaterThan(LATE / 2);
});
