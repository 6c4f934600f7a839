import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { inputs, type Reply } from '../support/index.js';
import { setStage, TRANSACTIONAL, type Stage } from '../support/stage.js';

const ACTIONS = {
  'case.close': { ...TRANSACTIONAL, uniqueness: 'subject' },
  'report.file': { ...TRANSACTIONAL, uniqueness: 'subject-and-period' },
};

let stage: Stage;
beforeAll(async () => {
  stage = await setStage({ actions: ACTIONS });
});
afterAll(() => stage?.clear());

const close = (id: string, changes: Record<string, unknown> = {}): Record<string, unknown> =>
  inputs({ action: 'case.close', subject: { type: 'case', id }, ...changes });
const report = (id: string, reportingPeriod: unknown, changes: Record<string, unknown> = {}): Record<string, unknown> =>
  inputs({ action: 'report.file', subject: { type: 'case', id }, params: { reportingPeriod }, ...changes });
const OTHER_MODEL = { model: { id: 'm-2', version: '1' } };

function expectDuplicate(reply: Reply, winner: Reply): void {
  expect([reply.status, reply.body.code, reply.body.retryable]).toEqual([409, 'duplicate-subject', false]);
  const { decisionId, key, recordedAt } = winner.body;
  expect(reply.body.winner).toEqual({ decisionId, key, recordedAt });
}

describe('a subject that is taken', () => {
  test('refuses another decision, names the winner, and records the refusal with a ledger entry of its own', async () => {
    const before = await stage.tally();
    const winner = await stage.orchestrator.decide({ inputs: close('u-1') }, 'u-1-winner');
    const loser = await stage.orchestrator.decide({ inputs: close('u-1', OTHER_MODEL) }, 'u-1-loser');
    expectDuplicate(loser, winner);
    expect(loser.body).toMatchObject({
      type: 'urn:decision-ledger:problem:duplicate-subject',
      status: 409,
      decisionId: expect.any(String),
      key: 'u-1-loser',
      ledgerEntryId: expect.any(String),
      recordedAt: expect.stringMatching(/\.\d{6}Z$/),
    });
    expect(loser.body.decisionId).not.toBe(winner.body.decisionId);
    expect(loser.headers.get('idempotency-expires')).toMatch(/GMT$/);
    expect(await stage.tally()).toEqual({
      effects: before.effects + 1,
      entries: before.entries + 2,
      decisions: before.decisions + 2,
    });
    const read = await stage.auditor.get(`/v1/decisions/${loser.body.decisionId}`);
    expect(read.body).toMatchObject({
      state: 'completed',
      outcome: { status: 'refused', reason: 'duplicate-subject' },
      ledgerEntryId: loser.body.ledgerEntryId,
      recordedAt: loser.body.recordedAt,
      effectId: null,
    });
  });

  test('refuses under the content key as well, and the refused key stays refused', async () => {
    const winner = await stage.orchestrator.decide({ inputs: close('u-2') });
    const losers: Reply[] = [];
    for (let n = 0; n < 3; n += 1) losers.push(await stage.orchestrator.decide({ inputs: close('u-2', OTHER_MODEL) }));
    for (const loser of losers) expectDuplicate(loser, winner);
    expect(new Set(losers.map(({ text }) => text)).size).toBe(1);
  });

  test('another type, another id, another action and another tenant are other subjects', async () => {
    const globex = await stage.addTenant('globex');
    await globex.admin.put('/v1/actions/case.close', ACTIONS['case.close']);
    await stage.admin.put('/v1/actions/case.open', ACTIONS['case.close']);
    const replies = [
      await stage.orchestrator.decide({ inputs: close('u-3') }),
      await stage.orchestrator.decide({ inputs: close('u-3', { subject: { type: 'order', id: 'u-3' } }) }),
      await stage.orchestrator.decide({ inputs: close('U-3') }),
      await stage.orchestrator.decide({ inputs: close('u-3 ') }),
      await stage.orchestrator.decide({ inputs: close('u-3', { action: 'case.open' }) }),
      await globex.orchestrator.decide({ inputs: close('u-3') }),
    ];
    expect(replies.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201, 201]);
  });

  test('a key with quotes in it is named as it is', async () => {
    const winner = await stage.orchestrator.decide({ inputs: close('u-4') }, '"a\\"b\\\\c%s"');
    const loser = await stage.orchestrator.decide({ inputs: close('u-4', OTHER_MODEL) });
    expectDuplicate(loser, winner);
    expect(loser.body.winner.key).toBe('a"b\\c%s');
  });

  test('of eight decisions at one instant exactly one is applied, and the others name it', async () => {
    const replies = await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        stage.orchestrator.decide({ inputs: close('u-5', { policyVersion: `pol-${n}` }) }, `u-5-${n}`),
      ),
    );
    const winners = replies.filter(({ status }) => status === 201);
    const [winner] = winners;
    expect(winners).toHaveLength(1);
    for (const loser of replies.filter((reply) => reply !== winner)) if (winner) expectDuplicate(loser, winner);
    expect(await stage.database.count(`SELECT count(*) FROM effect WHERE subject_id = 'u-5'`)).toBe(1);
  });
});

describe('a subject and period that are taken', () => {
  test('refuse a second report for the same period, not one for another', async () => {
    const winner = await stage.orchestrator.decide({ inputs: report('p-1', '2026-Q3') });
    const next = await stage.orchestrator.decide({ inputs: report('p-1', '2026-Q4') });
    const loser = await stage.orchestrator.decide({ inputs: report('p-1', '2026-Q3', OTHER_MODEL) });
    expect([winner.status, next.status]).toEqual([201, 201]);
    expect(winner.body.contentKey).not.toBe(next.body.contentKey);
    expectDuplicate(loser, winner);
  });
});

describe('the forms of a period', () => {
  const GOOD = [
    ...['2026', '0001', '2026-H1', '2026-H2', '2026-Q1', '2026-Q4', '2026-01', '2026-12', '2026-W01', '2026-W52'],
    ...['2026-W53', '2020-W53', '2015-W53', '2004-W53', '2026-01-01', '2026-12-31', '2024-02-29', '2000-02-29'],
  ];
  const BAD = [
    ...['', ' ', '26', '20261', '2026-', '2026-H0', '2026-H3', '2026-h1', '2026-Q0', '2026-Q5', '2026-q1', '2026Q1'],
    ...['2026-00', '2026-13', '2026-1', '202601', '2026-W00', '2026-W54', '2026-W1', '2026W01', '2025-W53', '2021-W53'],
    ...['2026-W01-1', '2026-01-00', '2026-01-32', '2026-04-31', '2023-02-29', '1900-02-29', '2026-1-1', '2026-001'],
    ...[
      '-2026',
      '+2026',
      '2026-01-01T00:00:00Z',
      ' 2026',
      '2026 ',
      '2026\n',
      '２０２６',
      '2026–Q1',
      'Q1-2026',
      '2026/01',
    ],
    ...[2026, null, true, ['2026'], { year: 2026 }],
  ];

  test('every form of the contract is taken', async () => {
    const decisions = GOOD.map((period, n) => ({ inputs: report(`good-${n}`, period) }));
    const { body } = await stage.orchestrator.post('/v1/decisions/batch', { decisions });
    const taken = GOOD.filter((_period, n) => body.items[n].status === 201);
    expect(taken).toEqual(GOOD);
    const { items } = (await stage.auditor.get('/v1/decisions?subjectId=good-0')).body;
    expect(items[0].reportingPeriod).toBe('2026');
  });

  test('anything else is 400 and names the place', async () => {
    const before = await stage.tally();
    const decisions = BAD.map((period, n) => ({ inputs: report(`bad-${n}`, period) }));
    const { body } = await stage.orchestrator.post('/v1/decisions/batch', { decisions });
    const refused = BAD.filter((_period, n) => body.items[n].body.code === 'validation-failed');
    expect(refused).toEqual(BAD);
    for (const item of body.items) expect(item.body.errors[0].pointer).toBe('/inputs/params/reportingPeriod');
    expect(await stage.tally()).toEqual(before);
  });

  test('a missing period is 400, and the key stays free', async () => {
    const missing = { ...report('p-2', '2026'), params: { other: 1 } };
    const reply = await stage.orchestrator.decide({ inputs: missing }, 'p-2');
    expect([reply.status, reply.body.code]).toEqual([400, 'validation-failed']);
    expect(reply.body.errors[0].pointer).toBe('/inputs/params/reportingPeriod');
    expect((await stage.orchestrator.decide({ inputs: report('p-2', '2026') }, 'p-2')).status).toBe(201);
  });
});

describe('when the rules change', () => {
  const decide = (action: string, id: string, n: number, period = '2026'): Promise<Reply> =>
    stage.orchestrator.decide({
      inputs: inputs({
        action,
        subject: { type: 'case', id },
        params: { reportingPeriod: period },
        policyVersion: `pol-${n}`,
      }),
    });
  const put = (action: string, uniqueness: string): Promise<Reply> =>
    stage.admin.put(`/v1/actions/${action}`, { ...TRANSACTIONAL, uniqueness });

  test('an effect from before the action said "once" takes the subject', async () => {
    await put('later.once', 'none');
    const first = await decide('later.once', 'c-1', 1);
    await decide('later.once', 'c-1', 2);
    await put('later.once', 'subject');
    expectDuplicate(await decide('later.once', 'c-1', 3), first);
    expect((await decide('later.once', 'c-2', 4)).status).toBe(201);
  });

  test('from once a period to once for good: any period takes the subject', async () => {
    await put('later.good', 'subject-and-period');
    const first = await decide('later.good', 'c-3', 1, '2026-Q1');
    await put('later.good', 'subject');
    expectDuplicate(await decide('later.good', 'c-3', 2, '2026-Q2'), first);
  });

  test('from once for good to once a period: the same period is taken, another is free', async () => {
    await put('later.period', 'subject');
    const first = await decide('later.period', 'c-4', 1, '2026-Q1');
    await put('later.period', 'subject-and-period');
    expectDuplicate(await decide('later.period', 'c-4', 2, '2026-Q1'), first);
    expect((await decide('later.period', 'c-4', 3, '2026-Q2')).status).toBe(201);
  });

  test('once no more: a new decision is applied, and what was refused stays refused', async () => {
    await put('once.no-more', 'subject');
    await decide('once.no-more', 'c-5', 1);
    const refused = await decide('once.no-more', 'c-5', 2);
    await put('once.no-more', 'none');
    expect((await decide('once.no-more', 'c-5', 3)).status).toBe(201);
    const again = await decide('once.no-more', 'c-5', 2);
    expect([again.status, again.text]).toEqual([409, refused.text]);
  });
});
