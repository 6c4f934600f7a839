import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Client, inputs, type Reply } from '../support/index.js';
import { setStage, TRANSACTIONAL, type Stage } from '../support/stage.js';

const ODD_ID = `50%_'"\\; DROP TABLE x --`;
const ROW_MEMBERS = ['decisionId', 'key', 'keySource', 'contentKey', 'state', 'outcome', 'action', 'actionVersion']
  .concat(['subject', 'reportingPeriod', 'model', 'promptTemplateSha256', 'retrievalSnapshotId', 'policyVersion'])
  .concat(['effectId', 'externalRef', 'ledgerEntryId', 'receivedAt', 'recordedAt']);

let stage: Stage;
/** The one decision that differs from all others in everything that can be asked for. */
let odd: Reply;
let refused: Reply;
let credentialId: string;

beforeAll(async () => {
  stage = await setStage({
    actions: {
      'note.add': TRANSACTIONAL,
      'odd.act': TRANSACTIONAL,
      'case.close': { ...TRANSACTIONAL, uniqueness: 'subject' },
    },
  });
  await stage.admin.put('/v1/actions/odd.act', { ...TRANSACTIONAL, responseRetentionDays: 7 });
  // One statement records a batch, so all of these carry one time.
  const decisions = Array.from({ length: 23 }, (_, n) => ({
    idempotencyKey: `equal-${n}`,
    inputs: inputs({ subject: { type: 'case', id: `equal-${n}` } }),
  }));
  await stage.orchestrator.post('/v1/decisions/batch', { decisions });
  const issued = await stage.admin.post('/v1/credentials', { role: 'orchestrator', name: 'odd' });
  credentialId = issued.body.credentialId;
  odd = await new Client(stage.service.url, issued.body.token).decide(
    {
      inputs: {
        subject: { type: 'order', id: ODD_ID },
        action: 'odd.act',
        params: { reportingPeriod: '2026-H2' },
        model: { id: 'm-odd', version: 'v-odd' },
        promptTemplateSha256: 'c'.repeat(64),
        retrievalSnapshotId: 'rs-odd',
        policyVersion: 'pol-odd',
      },
      evidence: { stepId: 'step-odd', runId: 'run-odd' },
    },
    'key-odd',
  );
  await stage.orchestrator.decide({ inputs: inputs({ action: 'case.close' }) });
  refused = await stage.orchestrator.decide({ inputs: inputs({ action: 'case.close', policyVersion: 'p' }) });
});
afterAll(() => stage?.clear());

const list = (query: Record<string, string> | string = {}): Promise<Reply> =>
  stage.auditor.get(`/v1/decisions?${typeof query === 'string' ? query : new URLSearchParams(query)}`);
const idsOf = ({ body }: Reply): string[] => body.items.map((row: { decisionId: string }) => row.decisionId);

test('a row has the members of the contract and no other', async () => {
  const { body } = await list({ decisionId: odd.body.decisionId });
  expect(Object.keys(body).toSorted()).toEqual(['items', 'nextCursor']);
  expect(Object.keys(body.items[0]).toSorted()).toEqual(ROW_MEMBERS.toSorted());
  expect(body.items[0]).toMatchObject({
    key: 'key-odd',
    keySource: 'client',
    outcome: { status: 'applied' },
    actionVersion: 2,
    subject: { type: 'order', id: ODD_ID },
    recordedAt: odd.body.recordedAt,
    externalRef: null,
  });
  const row = (await list({ decisionId: refused.body.decisionId })).body.items[0];
  expect([row.outcome, row.effectId]).toEqual([{ status: 'refused', reason: 'duplicate-subject' }, null]);
});

describe('every filter changes the answer', () => {
  const ONLY_ODD: readonly (readonly [string, () => string])[] = [
    ['action', () => 'odd.act'],
    ['actionVersion', () => '2'],
    ['subjectType', () => 'order'],
    ['subjectId', () => ODD_ID],
    ['modelId', () => 'm-odd'],
    ['modelVersion', () => 'v-odd'],
    ['promptTemplateSha256', () => 'c'.repeat(64)],
    ['retrievalSnapshotId', () => 'rs-odd'],
    ['policyVersion', () => 'pol-odd'],
    ['reportingPeriod', () => '2026-H2'],
    ['key', () => 'key-odd'],
    ['contentKey', () => odd.body.contentKey],
    ['stepId', () => 'step-odd'],
    ['runId', () => 'run-odd'],
    ['credentialId', () => credentialId],
    ['decisionId', () => odd.body.decisionId],
  ];
  test.each(ONLY_ODD)('%s finds the one, and nothing when it is asked for with another’s', async (name, value) => {
    expect(idsOf(await list({ [name]: value() }))).toEqual([odd.body.decisionId]);
    const conflicting: Record<string, string> = name === 'action' ? { subjectType: 'case' } : { action: 'note.add' };
    expect(idsOf(await list({ [name]: value(), ...conflicting }))).toEqual([]);
  });

  test('outcome, reason and state', async () => {
    expect(idsOf(await list({ outcome: 'refused' }))).toEqual([refused.body.decisionId]);
    expect(idsOf(await list({ reason: 'duplicate-subject' }))).toEqual([refused.body.decisionId]);
    expect(idsOf(await list({ outcome: 'applied' }))).toHaveLength(25);
    expect(idsOf(await list({ state: 'completed' }))).toHaveLength(26);
    for (const state of ['in_flight', 'failed', 'unknown']) expect(idsOf(await list({ state }))).toEqual([]);
    expect(idsOf(await list({ externalRef: 'none' }))).toEqual([]);
  });

  test('stepId, runId and credentialId are those of any attempt', async () => {
    const asked = inputs({ subject: { type: 'case', id: 'retried' } });
    const first = await stage.orchestrator.decide({
      inputs: asked,
      evidence: { stepId: 'step-first', runId: 'run-first' },
    });
    await stage.orchestrator.decide({ inputs: asked, evidence: { stepId: 'step-later', runId: 'run-later' } });
    const queries: Record<string, string>[] = [
      { stepId: 'step-first' },
      { stepId: 'step-later' },
      { runId: 'run-later', stepId: 'step-first' },
    ];
    for (const query of queries) expect(idsOf(await list(query))).toEqual([first.body.decisionId]);
  });

  test('recordedFrom includes, recordedTo excludes, both to the microsecond', async () => {
    const at: string = odd.body.recordedAt;
    const shifted = async (microseconds: number): Promise<string> => {
      const [row] = await stage.database.query<{ at: string }>(
        `SELECT to_char(($1::timestamptz + $2 * interval '1 microsecond') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at`,
        [at, microseconds],
      );
      return row?.at ?? '';
    };
    const [before, after] = [await shifted(-1), await shifted(1)];
    const found = async (query: Record<string, string>): Promise<boolean> =>
      idsOf(await list({ action: 'odd.act', ...query })).length === 1;
    expect(await found({ recordedFrom: at })).toBe(true);
    expect(await found({ recordedFrom: after })).toBe(false);
    expect(await found({ recordedTo: at })).toBe(false);
    expect(await found({ recordedTo: after })).toBe(true);
    expect(await found({ recordedFrom: before, recordedTo: at })).toBe(false);
    expect(await found({ recordedFrom: at, recordedTo: after })).toBe(true);
  });

  test.each([
    ['+04:00', 4 * 60],
    ['-03:30', -3.5 * 60],
    ['+00:00', 0],
  ])('a time with the offset %s is that instant', async (offset, minutes) => {
    const [row] = await stage.database.query<{ local: string; later: string }>(
      `SELECT to_char(($1::timestamptz AT TIME ZONE 'UTC') + $2 * interval '1 minute', 'YYYY-MM-DD"T"HH24:MI:SS.US') AS local,
              to_char(($1::timestamptz AT TIME ZONE 'UTC') + $2 * interval '1 minute' + interval '1 microsecond', 'YYYY-MM-DD"T"HH24:MI:SS.US') AS later`,
      [odd.body.recordedAt, minutes],
    );
    const query = { action: 'odd.act', recordedFrom: `${row?.local}${offset}`, recordedTo: `${row?.later}${offset}` };
    expect(idsOf(await list(query))).toEqual([odd.body.decisionId]);
  });

  test.each(['%', '_', `50%`, `50%_`, '*', "'", '"', '\\', `' OR '1'='1`, '\\%', ODD_ID.toLowerCase(), ` ${ODD_ID}`])(
    'a value is compared as it stands: %s finds nothing',
    async (subjectId) => {
      expect(idsOf(await list({ subjectId }))).toEqual([]);
    },
  );

  test.each([
    ['U+0000', 'a\u0000b'],
    ['10,000 characters', 'x'.repeat(10_000)],
  ])('a value with %s finds nothing or is refused', async (_name, subjectId) => {
    const reply = await list({ subjectId });
    if (reply.status === 200) expect(reply.body.items).toEqual([]);
    else expect([reply.status, reply.body.errors[0].pointer]).toEqual([400, 'subjectId']);
  });
});

describe('a question that is not understood is refused, and the parameter named', () => {
  const FILTERS = [
    'action',
    'actionVersion',
    'subjectType',
    'subjectId',
    'modelId',
    'modelVersion',
    'promptTemplateSha256',
  ]
    .concat([
      'retrievalSnapshotId',
      'policyVersion',
      'reportingPeriod',
      'outcome',
      'reason',
      'state',
      'key',
      'contentKey',
      'downstreamKey',
    ])
    .concat(['externalRef', 'stepId', 'runId', 'credentialId', 'decisionId', 'recordedFrom', 'recordedTo'])
    .concat(['limit', 'order', 'cursor']);
  const expectRefused = (reply: Reply, name: string): void => {
    expect([reply.status, reply.body.code]).toEqual([400, 'validation-failed']);
    expect(reply.body.errors.map((one: { pointer: string }) => one.pointer)).toContain(name);
  };

  test.each(FILTERS)('%s empty, or given twice', async (name) => {
    const value = { limit: '5', order: 'asc', recordedFrom: '2026-01-01T00:00:00Z', outcome: 'applied' }[name] ?? 'x';
    expectRefused(await list(`${name}=`), name);
    expectRefused(await list(`${name}`), name);
    expectRefused(await list(`${name}=${value}&${name}=${value}`), name);
  });

  test.each([
    'foo',
    'Action',
    'subject',
    'subjectid',
    'action[]',
    'action[eq]',
    'action.like',
    'recordedFrom[gte]',
    'sort',
  ])('%s is no parameter', async (name) => {
    expectRefused(await list(`${encodeURIComponent(name)}=x`), name);
    expectRefused(await list(`action=note.add&${encodeURIComponent(name)}=`), name);
  });

  test.each([
    ['limit', '0'],
    ['limit', '501'],
    ['limit', '-1'],
    ['limit', '1.5'],
    ['limit', 'ten'],
    ['limit', '1e2'],
    ['order', 'up'],
    ['order', 'DESC'],
    ['outcome', 'denied'],
    ['state', 'done'],
    ['actionVersion', 'one'],
    ['recordedFrom', 'yesterday'],
    ['recordedFrom', '2026-11-30'],
    ['recordedFrom', '2026-11-30T00:00:00'],
    ['recordedTo', '2026-02-30T00:00:00Z'],
    ['recordedTo', '1764500000000'],
  ])('%s=%s', async (name, value) => {
    expectRefused(await list({ [name]: value }), name);
  });
});
