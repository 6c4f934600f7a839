import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { QUESTIONS } from '../../apps/api/src/reading/questions/questions.js';
import { Asker, attemptOf, counted, inOrder, type Row } from '../support/asking.js';
import { Client } from '../support/index.js';
import {
  credentialIdOf,
  inputsOf,
  promptSha256,
  type Arrived,
  type Decided,
  type Chronicle,
} from '../support/chronicle.js';
import { liveThroughAQuarter } from '../support/quarter.js';
import { setStage, until, type Stage } from '../support/stage.js';

let stage: Stage;
let chronicle: Chronicle;
let otherAgent: Client;
let otherAuditor: Client;

beforeAll(async () => {
  stage = await setStage({ actions: {}, env: { SWEEP_INTERVAL_SECONDS: '1' } });
  const issued = async (role: string): Promise<Client> =>
    new Client(
      stage.service.url,
      (await stage.admin.post('/v1/credentials', { role, name: `another ${role}` })).body.token,
    );
  otherAgent = await issued('orchestrator');
  otherAuditor = await issued('auditor');
  chronicle = await liveThroughAQuarter(stage, otherAgent);
}, 120_000);
afterAll(() => stage?.clear());

const QUARTER = ['quarter', 'outage'];
const quarter = (): { recordedFrom: string; recordedTo: string } => chronicle.between('quarter', 'after');
const isRecordedIn =
  (phases: readonly string[]) =>
  (one: Decided): boolean =>
    phases.includes(one.recordedIn ?? '');
const idsOf = (rows: readonly Row[]): string[] => rows.map((row) => row['decisionId']);
const expected = (decisions: readonly Decided[]): string[] => decisions.map(({ decisionId }) => decisionId).toSorted();
/** For each question of the guide, its requests, and what their answers must be by what was written down. */
const ANSWERS: Readonly<Record<string, (asker: Asker) => Promise<void>>> = {
  async 'issued-and-tried'(asker) {
    const isRefund = ({ plan }: Decided): boolean => plan.action === 'refund.create';
    const issued = await asker.ask(0, quarter());
    const decided = chronicle.decided((one) => isRefund(one) && isRecordedIn(QUARTER)(one));
    expect(inOrder(issued)).toEqual(counted(decided, ({ outcome }) => ({ outcome })));
    const tried = await asker.ask(1, quarter());
    const arrived = chronicle.arrived(({ decided: one, phase }) => isRefund(one) && QUARTER.includes(phase));
    expect(inOrder(tried)).toEqual(counted(arrived, ({ disposition }) => ({ disposition })));
    // As a person counts them who knows the story: 12 + 5 + 2 issued, 3 not; 12 + 1 + 18 + 4 repeats, 3 reuses, 1 new key.
    expect([issued['total'], tried['total']]).toEqual([22, 22 + 35 + 3 + 1]);
  },

  async 'two-reports'(asker) {
    const filed = await asker.ask(0);
    const subjects = filed['items'].map((row: Row) => row['subject'].id);
    expect(subjects).toEqual(['S-1', 'S-2', 'S-3', 'S-4']);
    const attempted = await asker.ask(1);
    const seconds = chronicle.arrived(({ decided }) => decided.reason === 'duplicate-subject');
    expect(attempted['items']).toMatchObject(seconds.map(attemptOf));
    expect(attempted['items'].map((row: Row) => [row['credentialId'], row['evidence'].stepId])).toEqual([
      [credentialIdOf(otherAgent), 'step-9'],
      [credentialIdOf(otherAgent), 'step-10'],
      [credentialIdOf(stage.orchestrator), 'step-7'],
    ]);
  },

  async population(asker) {
    const text = await asker.text(0, quarter());
    const rows = await asker.export(0, quarter());
    const all = chronicle.decided(isRecordedIn(QUARTER));
    expect(idsOf(rows).toSorted()).toEqual(expected(all));
    const [trailer = ''] = text.trimEnd().split('\n').slice(-1);
    const before = text.slice(0, -trailer.length - 1);
    const sha256 = createHash('sha256').update(before).digest('hex');
    expect(JSON.parse(trailer)).toEqual({ trailer: { rows: all.length, sha256, nextCursor: null } });
    expect((await asker.ask(1, quarter()))['total']).toBe(all.length);
    // The same again, to the byte, once what was decided in it is over.
    expect(await asker.text(0, quarter())).toBe(text);
  },

  async 'policy-version'(asker) {
    for (const one of chronicle.decided(({ plan }) => plan.action === 'refund.create')) {
      const { decisionId, actionVersion, plan } = one;
      expect(await asker.ask(0, { decisionId })).toMatchObject({
        decisionId,
        policyVersion: plan.policy,
        actionVersion,
      });
    }
    expect(new Set(chronicle.decided(() => true).map(({ plan }) => plan.policy))).toEqual(new Set(['pol-7', 'pol-8']));
  },

  async 'same-basis'(asker) {
    for (const template of ['template one', 'template two']) {
      const found = await asker.ask(0, { promptTemplateSha256: promptSha256(template) });
      expect(idsOf(found['items']).toSorted()).toEqual(
        expected(chronicle.decided(({ plan }) => plan.prompt === template)),
      );
    }
    for (const [modelId, modelVersion] of [
      ['m-1', '2026-09-01'],
      ['m-1', '2026-10-01'],
      ['m-2', '2026-09-01'],
    ] as const) {
      const found = await asker.ask(1, { modelId, modelVersion });
      const under = chronicle.decided(({ plan: { model } }) => model.id === modelId && model.version === modelVersion);
      expect(idsOf(found['items']).toSorted()).toEqual(expected(under));
    }
    for (const snapshot of ['rs-0', 'rs-1', 'rs-2', 'rs-3']) {
      const found = await asker.ask(2, { retrievalSnapshotId: snapshot });
      expect(idsOf(found['items']).toSorted()).toEqual(
        expected(chronicle.decided(({ plan }) => plan.snapshot === snapshot)),
      );
    }
  },

  async 'what-the-model-saw'(asker) {
    const noted = chronicle.decided(({ plan }) => plan.note !== undefined);
    expect(noted).toHaveLength(6);
    for (const { decisionId, plan } of noted) {
      const [first] = chronicle.arrived(({ decided }) => decided.decisionId === decisionId);
      const { request } = await asker.ask(0, { decisionId });
      expect(request).toMatchObject({
        inputs: { ...inputsOf(plan), tenantId: 'acme' },
        note: 'parcel lost',
        firstEvidence: { runId: first?.run, stepId: first?.step, rationale: `because of ${first?.step}` },
      });
    }
  },

  async 'one-subject'(asker) {
    for (const subjectId of ['C-1', 'D-0', 'S-1', 'S-2', 'P-5', 'P-7']) {
      const { items } = await asker.ask(0, { subjectId });
      const done = chronicle.decided(({ plan }) => plan.subject === subjectId);
      expect(idsOf(items)).toEqual(done.map(({ decisionId }) => decisionId));
      expect(items.map((row: Row) => [row['state'], row['outcome']?.status ?? null])).toEqual(
        done.map(({ state, outcome }) => [state, outcome]),
      );
    }
  },

  async 'not-to-act'(asker) {
    const refused = chronicle.decided((one) => one.outcome === 'refused' && isRecordedIn(QUARTER)(one));
    const { items } = await asker.ask(0, quarter());
    expect(items.map((row: Row) => [row['decisionId'], row['outcome'].reason, row['effectId']])).toEqual(
      refused.map(({ decisionId, reason }) => [decisionId, reason, null]),
    );
    const byReason = await asker.ask(1, quarter());
    expect(inOrder(byReason)).toEqual(counted(refused, ({ plan, reason }) => ({ action: plan.action, reason })));
    expect(refused).toHaveLength(3 + 2 + 1);
  },

  async 'reused-keys'(asker) {
    const { items } = await asker.ask(0, quarter());
    const reused = chronicle.arrived(({ disposition }) => disposition === 'mismatch');
    expect(items).toMatchObject(reused.map(attemptOf));
    expect(items.map((row: Row) => row['key']).slice(0, 3)).toEqual(['order-1', 'order-1', 'order-3']);
  },

  async outage(asker) {
    const day = chronicle.between('outage', 'after');
    const retries = { 'refund.create': 18 + 4, 'payout.send': 1 };
    const effects = { 'refund.create': 2, 'payout.send': 1 };
    for (const action of ['refund.create', 'payout.send'] as const) {
      const arrived = await asker.ask(0, { ...day, action });
      const inOutage = chronicle.arrived(({ decided, phase }) => decided.plan.action === action && phase === 'outage');
      const value = ({ disposition, decided: { outcome } }: Arrived): Row => ({ disposition, outcome });
      expect(inOrder(arrived)).toEqual(counted(inOutage, value));
      const firsts = action === 'refund.create' ? 'created' : 'completed';
      const countOf = (test: (group: Row) => boolean): number =>
        arrived['groups'].filter(test).reduce((sum: number, { count }: Row) => sum + count, 0);
      expect(countOf(({ disposition }) => disposition !== firsts)).toBe(retries[action]);
      const decided = await asker.ask(1, { ...day, action });
      expect(decided).toEqual({ total: effects[action], groups: [{ outcome: 'applied', count: effects[action] }] });
      // No second effect: as many as arrivals that brought one.
      expect(countOf(({ disposition, outcome }) => disposition === firsts && outcome === 'applied')).toBe(
        effects[action],
      );
    }
  },

  async open(asker) {
    for (const [n, state] of ['unknown', 'in_flight'].entries()) {
      const { items } = await asker.ask(n);
      expect(idsOf(items)).toEqual(chronicle.decided((one) => one.state === state).map(({ decisionId }) => decisionId));
      for (const row of items) {
        expect(row['receivedAt'] > chronicle.at('quarter') && row['receivedAt'] < chronicle.at('outage')).toBe(true);
        expect([row['outcome'], row['recordedAt']]).toEqual([null, null]);
      }
    }
    const { items } = await asker.ask(2);
    const told = chronicle.arrived(
      ({ decided, disposition }) => decided.state === 'unknown' && disposition === 'unknown',
    );
    expect(items).toMatchObject(told.map(attemptOf));
    // Nobody reported the one whose lease ran out: the record of its key says when.
    const [silent] = chronicle.decided(({ plan }) => plan.action === 'payout.blind');
    expect(idsOf(items)).not.toContain(silent?.decisionId);
    const { body } = await stage.auditor.get(`/v1/idempotency-records/${silent?.key}`);
    expect(body).toMatchObject({ status: 'unknown', lockedUntil: expect.stringMatching(/Z$/) });
  },

  async 'provider-references'(asker) {
    const rows = await asker.export(0, quarter());
    const paid = chronicle.decided(({ externalRef }) => externalRef !== null);
    expect(
      Object.fromEntries(rows.map((row) => [row['decisionId'], [row['externalRef'], row['inputs'].params.amount]])),
    ).toEqual(
      Object.fromEntries(
        paid.map(({ decisionId, externalRef, plan }) => [decisionId, [externalRef, plan.params['amount']]]),
      ),
    );
    expect(paid.map(({ externalRef }) => externalRef).toSorted()).toEqual([
      're_0',
      're_1',
      're_10',
      're_2',
      're_3',
      're_5',
      're_9',
    ]);
  },

  async 'who-won'(asker) {
    for (const decided of chronicle.decisions) {
      const { items } = await asker.ask(0, { decisionId: decided.decisionId });
      const arrivals = chronicle.arrived((one) => one.decided === decided);
      expect(items).toMatchObject(arrivals.map(attemptOf));
      const winners = items.filter((row: Row) => row['won']);
      expect(winners).toHaveLength(decided.outcome === null ? 0 : 1);
    }
  },

  async 'one-run'(asker) {
    for (const runId of new Set(chronicle.arrivals.flatMap(({ run }) => run ?? []))) {
      const { items } = await asker.ask(0, { runId });
      const ofRun = new Set(chronicle.arrived(({ run }) => run === runId).map(({ decided }) => decided));
      expect(idsOf(items).toSorted()).toEqual(expected([...ofRun]));
    }
  },

  async rules(asker) {
    const { items } = await asker.ask(0, { action: 'refund.create' });
    const changes = items.map((row: Row) => [
      row['version'],
      row['responseRetentionDays'],
      row['leaseSeconds'],
      row['credentialId'],
    ]);
    const admin = credentialIdOf(stage.admin);
    expect(changes).toEqual([
      [1, 90, 30, admin],
      [2, 30, 30, admin],
      [3, 30, 60, admin],
    ]);
    const byVersion = await asker.ask(1, { action: 'refund.create' });
    const decided = chronicle.decided(({ plan }) => plan.action === 'refund.create');
    expect(inOrder(byVersion)).toEqual(counted(decided, ({ actionVersion, outcome }) => ({ actionVersion, outcome })));
  },

  async 'who-looked'(asker) {
    const [row] = await stage.database.query<{ at: string }>(`SELECT rfc3339(clock_timestamp()) AS at`);
    const from = row?.at ?? '';
    const refunds = { action: 'refund.create', ...quarter() };
    await otherAuditor.get(`/v1/exports/decisions?${new URLSearchParams(refunds)}`);
    await otherAuditor.get('/v1/exports/decisions?action=sar.file&format=csv');
    await otherAuditor.get('/v1/decisions?action=sar.file');
    const question = { from, to: '2100-01-01T00:00:00Z' };
    const { items } = await until(
      () => asker.ask(0, question),
      (answer) => answer['items'].filter((one: Row) => one['finished']).length === 2,
    );
    const credentialId = credentialIdOf(otherAuditor);
    const access = { credentialId, method: 'GET', route: '/v1/exports/decisions', finished: true };
    expect(items).toMatchObject([
      {
        ...access,
        filters: refunds,
        rows: chronicle.decided((one) => one.plan.action === 'refund.create' && isRecordedIn(QUARTER)(one)).length,
      },
      { ...access, filters: { action: 'sar.file', format: 'csv' }, rows: 7 },
    ]);
  },
};

test('every question of the guide is asked here', () => {
  expect(Object.keys(ANSWERS).toSorted()).toEqual(QUESTIONS.map(({ id }) => id).toSorted());
});

test.each(QUESTIONS.map((question) => [question.question, question] as const))('%s', async (_title, question) => {
  const asker = new Asker(stage.auditor, question);
  await ANSWERS[question.id]?.(asker);
  expect(asker.answered).toEqual(new Set(question.requests));
});
