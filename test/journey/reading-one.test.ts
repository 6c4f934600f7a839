import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { inputs, type Reply } from '../support/index.js';
import { setStage, TRANSACTIONAL, type Stage } from '../support/stage.js';

const MICROSECONDS = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;
const SHA256 = /^[0-9a-f]{64}$/;

let stage: Stage;
beforeAll(async () => {
  stage = await setStage({
    actions: { 'note.add': TRANSACTIONAL, 'case.close': { ...TRANSACTIONAL, uniqueness: 'subject' } },
  });
});
afterAll(() => stage?.clear());

const about = (id: string, changes: Record<string, unknown> = {}): Record<string, unknown> =>
  inputs({ subject: { type: 'case', id }, ...changes });
const read = async ({ body }: Reply): Promise<Reply> => stage.auditor.get(`/v1/decisions/${body.decisionId}`);
const sha256Hex = (text: string): string => createHash('sha256').update(text).digest('hex');

/** The first 128 bits of a digest as a UUID of version 4. */
function uuid4Of(hex: string): string {
  const variant = ((parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `4${hex.slice(13, 16)}`,
    variant + hex.slice(17, 20),
    hex.slice(20, 32),
  ].join('-');
}

describe('a decision', () => {
  test('shows the three views in one: request, effect and entry', async () => {
    const evidence = {
      stepId: 'step-1',
      runId: 'run-1',
      attempt: 1,
      toolCallId: 'call-1',
      traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
      rationale: 'the parcel was lost',
    };
    const asked = about('one-1', { params: { amount: '10.00', reportingPeriod: '2026-Q3' } });
    const decided = await stage.orchestrator.decide({ inputs: asked, note: 'urgent', evidence }, 'one-1');
    await stage.orchestrator.decide({ inputs: asked, note: 'urgent', evidence: { stepId: 'step-2' } }, 'one-1');
    await stage.orchestrator.decide({ inputs: asked }, 'one-1');
    const { status, body } = await read(decided);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      decisionId: decided.body.decisionId,
      key: 'one-1',
      keySource: 'client',
      contentKey: decided.body.contentKey,
      state: 'completed',
      outcome: { status: 'applied' },
      action: 'note.add',
      actionVersion: 1,
      subject: { type: 'case', id: 'one-1' },
      reportingPeriod: '2026-Q3',
      model: { id: 'm-1', version: '2026-09-01' },
      promptTemplateSha256: 'a'.repeat(64),
      retrievalSnapshotId: 'rs-14',
      policyVersion: 'pol-7',
      effectId: decided.body.effect.effectId,
      externalRef: null,
      ledgerEntryId: decided.body.ledgerEntryId,
      receivedAt: expect.stringMatching(MICROSECONDS),
      recordedAt: decided.body.recordedAt,
      fingerprint: expect.stringMatching(SHA256),
      request: {
        inputs: { ...asked, tenantId: 'acme' },
        note: 'urgent',
        firstEvidence: evidence,
        receivedAt: body.receivedAt,
      },
      effect: { effectId: decided.body.effect.effectId, kind: 'note.add', status: 'applied' },
      ledgerEntry: { ledgerEntryId: decided.body.ledgerEntryId },
      attempts: { total: 3, byDisposition: { created: 1, replayed: 1, mismatch: 1 } },
    });
    expect(body.receivedAt <= body.recordedAt).toBe(true);
  });

  test('that was refused has a reason and no effect', async () => {
    await stage.orchestrator.decide({ inputs: about('one-2', { action: 'case.close' }) });
    const refused = await stage.orchestrator.decide({
      inputs: about('one-2', { action: 'case.close', policyVersion: 'p' }),
    });
    const { body } = await read(refused);
    expect(body).toMatchObject({
      state: 'completed',
      outcome: { status: 'refused', reason: 'duplicate-subject' },
      effectId: null,
      effect: null,
      ledgerEntryId: refused.body.ledgerEntryId,
      recordedAt: refused.body.recordedAt,
      request: { note: null },
      attempts: { total: 1, byDisposition: { refused: 1 } },
    });
  });

  test('gives downstream keys of the content key’s preimage', async () => {
    const decided = await stage.orchestrator.decide({ inputs: about('one-3') });
    const { body } = await read(decided);
    const [row] = await stage.database.query<{ inputs: string }>(
      'SELECT inputs FROM decision_record WHERE decision_id = $1',
      [decided.body.decisionId],
    );
    const hex = sha256Hex(row?.inputs ?? '');
    expect(decided.body.key).toBe(`dk_acme_${hex.slice(0, 40)}`);
    expect(body.downstreamKeys).toEqual({
      key: decided.body.key,
      hex40: hex.slice(0, 40),
      hex32: hex.slice(0, 32),
      uuid4: uuid4Of(hex),
    });
  });

  test('gives downstream keys of tenant and client key', async () => {
    const decided = await stage.orchestrator.decide({ inputs: about('one-4') }, 'order 8812'.replace(' ', '-'));
    const hex = sha256Hex('acme\u001forder-8812');
    expect((await read(decided)).body.downstreamKeys).toEqual({
      key: 'order-8812',
      hex40: hex.slice(0, 40),
      hex32: hex.slice(0, 32),
      uuid4: uuid4Of(hex),
    });
  });

  test.each([
    ['the largest integers', '{"n":[9007199254740991,-9007199254740991]}'],
    ['an amount as text', '{"amount":"123456789012345678901234567890.10"}'],
    ['a small fraction', '{"n":1e-7}'],
    ['a large power', '{"n":1e+21}'],
    ['text of every plane', '{"t":"é 中 😀 \\u2028 \\\\ \\" \\u007f"}'],
    ['names that mean something elsewhere', '{"__proto__":{"a":1},"constructor":1}'],
    ['no params', '{}'],
    ['sixty arrays in one another', `{"a":${'['.repeat(60)}${']'.repeat(60)}}`],
  ])('gives back %s as it was sent', async (name, params) => {
    const text = JSON.stringify({ inputs: about(`big ${name}`, { params: 'P' }) }).replace('"P"', params);
    const decided = await stage.orchestrator.decide(text);
    expect(decided.status).toBe(201);
    const { body, text: bytes } = await read(decided);
    expect(JSON.stringify(body.request.inputs.params)).toBe(JSON.stringify(JSON.parse(params)));
    for (const digits of params.match(/\d{16,}/g) ?? []) expect(bytes).toContain(digits);
  });

  test('has a reporting period for any action whose params state a well-formed one', async () => {
    const periods = [];
    for (const reportingPeriod of ['2026-W53', '2025-W53', 2026, null])
      periods.push(
        (await read(await stage.orchestrator.decide({ inputs: about('one-5', { params: { reportingPeriod } }) }))).body
          .reportingPeriod,
      );
    expect(periods).toEqual(['2026-W53', null, null, null]);
  });

  test.each(['none', '0', '00000000-0000-0000-0000-000000000000', "1' OR '1'='1", '%00', 'x'.repeat(600)])(
    'that is not there (%j) is 404',
    async (id) => {
      const reply = await stage.auditor.get(`/v1/decisions/${id === '%00' ? id : encodeURIComponent(id)}`);
      expect([reply.status, reply.body.code]).toEqual([404, 'not-found']);
    },
  );
});

describe('an idempotency record', () => {
  test('says what the key stands for', async () => {
    const decided = await stage.orchestrator.decide({ inputs: about('rec-1') }, 'rec-1');
    const reply = await stage.orchestrator.get('/v1/idempotency-records/rec-1');
    expect([reply.status, reply.body]).toEqual([
      200,
      {
        key: 'rec-1',
        keySource: 'client',
        status: 'completed',
        fingerprint: (await read(decided)).body.fingerprint,
        decisionId: decided.body.decisionId,
        lockedUntil: null,
        createdAt: expect.stringMatching(MICROSECONDS),
        expiresAt: expect.stringMatching(MICROSECONDS),
      },
    ]);
    const header = Date.parse(decided.headers.get('idempotency-expires') ?? '');
    expect(Math.abs(Date.parse(reply.body.expiresAt) - header)).toBeLessThan(1_000);
  });

  test('of a refusal is completed, under the content key too', async () => {
    await stage.orchestrator.decide({ inputs: about('rec-2', { action: 'case.close' }) });
    const refused = await stage.orchestrator.decide({
      inputs: about('rec-2', { action: 'case.close', policyVersion: 'p' }),
    });
    const reply = await stage.admin.get(`/v1/idempotency-records/${refused.body.key}`);
    expect(reply.body).toMatchObject({
      status: 'completed',
      keySource: 'content',
      decisionId: refused.body.decisionId,
    });
  });

  test.each(['no-such-key', 'REC-1', 'rec-1 ', '"rec-1"', '%', '_', 'x'.repeat(300), 'é', 'a\u0000b'])(
    'of a key that was never used (%j) is 404',
    async (key) => {
      await stage.orchestrator.decide({ inputs: about('rec-1') }, 'rec-1');
      const reply = await stage.auditor.get(`/v1/idempotency-records/${encodeURIComponent(key)}`);
      expect([reply.status, reply.body.code]).toEqual([404, 'not-found']);
    },
  );
});
