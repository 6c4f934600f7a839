import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import canonicalize from 'canonicalize';
import { inputs, type Reply } from '../support/index.js';
import { sendRaw, type RawReply } from '../support/raw.js';
import { setStage, type Stage } from '../support/stage.js';

let stage: Stage;
beforeAll(async () => {
  stage = await setStage();
});
afterAll(() => stage?.clear());

let subjects = 0;
/** Inputs that no other test of this file has. */
const fresh = (changes: Record<string, unknown> = {}): Record<string, unknown> =>
  inputs({ subject: { type: 'case', id: `K-${(subjects += 1)}` }, ...changes });

const sha256Hex = (value: unknown): string =>
  createHash('sha256')
    .update(canonicalize(value) ?? '')
    .digest('hex');
const contentKeyOf = (asked: Record<string, unknown>): string =>
  `dk_acme_${sha256Hex({ ...asked, tenantId: 'acme' }).slice(0, 40)}`;

/** Registers with header lines exactly as they are given. */
function withHeaderLines(lines: readonly string[], asked: Record<string, unknown>): Promise<RawReply> {
  const head = ['POST /v1/decisions HTTP/1.1', `Authorization: Bearer ${stage.tokens.orchestrator}`];
  return sendRaw(
    stage.service.url,
    [...head, 'Content-Type: application/json', ...lines],
    JSON.stringify({ inputs: asked }),
  );
}

describe('without a header', () => {
  test('the key is the hash of the canonical inputs with the tenant added', async () => {
    const asked = fresh();
    const { status, body } = await stage.orchestrator.decide({ inputs: asked });
    expect(status).toBe(201);
    expect(body).toMatchObject({ key: contentKeyOf(asked), keySource: 'content', contentKey: contentKeyOf(asked) });
  });

  test('a tenantId that is the credential’s changes nothing', async () => {
    const asked = fresh();
    const first = await stage.orchestrator.decide({ inputs: asked });
    const again = await stage.orchestrator.decide({ inputs: { tenantId: 'acme', ...asked } });
    expect(again.text).toBe(first.text);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
  });

  test('a tenantId that is another’s is refused', async () => {
    const reply = await stage.orchestrator.decide({ inputs: { ...fresh(), tenantId: 'globex' } });
    expect([reply.status, reply.body.code]).toEqual([403, 'tenant-mismatch']);
  });
});

describe('with a header', () => {
  test('the content key itself may be sent, and names the same decision as no header', async () => {
    const asked = fresh();
    const sent = await stage.orchestrator.decide({ inputs: asked }, contentKeyOf(asked));
    const bare = await stage.orchestrator.decide({ inputs: asked });
    expect(sent.body).toMatchObject({ key: contentKeyOf(asked), keySource: 'content' });
    expect(bare.text).toBe(sent.text);
  });

  test.each(['dk_', 'dk_acme_', `dk_acme_${'0'.repeat(40)}`, `dk_globex_${'0'.repeat(40)}`, 'dk_mine'])(
    'a key that begins as a content key and is not the derived one is refused: %s',
    async (key) => {
      const asked = fresh();
      const reply = await stage.orchestrator.decide({ inputs: asked }, key);
      expect([reply.status, reply.body.code]).toEqual([422, 'key-derivation-mismatch']);
      expect((await stage.orchestrator.decide({ inputs: asked })).headers.get('idempotent-replayed')).toBeNull();
    },
  );

  test('any other key is the key, and the content key stands beside it', async () => {
    const asked = fresh();
    const { body } = await stage.orchestrator.decide({ inputs: asked }, 'order-8812');
    expect(body).toMatchObject({ key: 'order-8812', keySource: 'client', contentKey: contentKeyOf(asked) });
  });

  test.each([
    ['bare and in quotes', 'same-1', '"same-1"', 'same-1'],
    ['with escapes, however often they are sent', '"a\\"b\\\\c"', '"a\\"b\\\\c"', 'a"b\\c'],
    ['with inner space and separators in quotes', '"a b, c; d=e"', '"a b, c; d=e"', 'a b, c; d=e'],
    ['of 255 characters', 'x'.repeat(255), `"${'x'.repeat(255)}"`, 'x'.repeat(255)],
    ['of one character', '!', '"!"', '!'],
    ['that a path would have to escape', 'a/b?c#d%20e', '"a/b?c#d%20e"', 'a/b?c#d%20e'],
    ['of digits', '00042', '"00042"', '00042'],
    ['with dots', '...', '"..."', '...'],
  ])('a key %s names one decision in both spellings', async (_name, one, other, decoded) => {
    const asked = fresh();
    const first = await withHeaderLines([`Idempotency-Key: ${one}`], asked);
    const again = await withHeaderLines([`idempotency-key: ${other}`], asked);
    expect(first.status).toBe(201);
    expect(first.body.key).toBe(decoded);
    expect(again.text).toBe(first.text);
    const record = await stage.auditor.get(`/v1/idempotency-records/${encodeURIComponent(decoded)}`);
    expect(record.body).toMatchObject({ key: decoded, decisionId: first.body.decisionId });
  });

  test.each([
    ['empty', ['Idempotency-Key:']],
    ['blank', ['Idempotency-Key:    ']],
    ['empty in quotes', ['Idempotency-Key: ""']],
    ['too long bare', [`Idempotency-Key: ${'x'.repeat(256)}`]],
    ['too long in quotes', [`Idempotency-Key: "${'x'.repeat(256)}"`]],
    ['with a parameter', ['Idempotency-Key: "k";a=1']],
    ['bare with a parameter', ['Idempotency-Key: k;a=1']],
    ['a list', ['Idempotency-Key: "a", "b"']],
    ['a bare list', ['Idempotency-Key: a,b']],
    ['an inner list', ['Idempotency-Key: ("a" "b")']],
    ['with an open quote', ['Idempotency-Key: "k']],
    ['with a closing quote only', ['Idempotency-Key: k"']],
    ['bare with a space', ['Idempotency-Key: a b']],
    ['bare with a backslash', ['Idempotency-Key: a\\b']],
    ['with an unknown escape', ['Idempotency-Key: "a\\n"']],
    ['with a leading space', ['Idempotency-Key: " k"']],
    ['with a trailing space', ['Idempotency-Key: "k "']],
    ['a dot', ['Idempotency-Key: .']],
    ['two dots', ['Idempotency-Key: ".."']],
    ['beyond ASCII', ['Idempotency-Key: "k\u00e9"']],
    ['beyond ASCII and bare', ['Idempotency-Key: k\u00e9']],
    ['with a tab', ['Idempotency-Key: "a\tb"']],
    ['sent twice', ['Idempotency-Key: k', 'Idempotency-Key: k']],
    ['sent twice in halves of one string', ['Idempotency-Key: "a', 'Idempotency-Key: b"']],
    ['sent twice in two spellings of its name', ['Idempotency-Key: k', 'IDEMPOTENCY-KEY: k']],
    ['sent twice, once empty', ['Idempotency-Key: k', 'Idempotency-Key:']],
  ])('a key that is %s is refused, and nothing is recorded', async (_name, lines) => {
    const before = await stage.tally();
    const reply = await withHeaderLines(lines, fresh());
    expect([reply.status, reply.body.code]).toEqual([400, 'invalid-idempotency-key']);
    expect(await stage.tally()).toEqual(before);
  });
});

describe('what is the same request', () => {
  const textOf = (params: string, id: string): string =>
    JSON.stringify({ inputs: fresh({ subject: { type: 'case', id }, params: 'PARAMS' }) }).replace('"PARAMS"', params);

  test.each([
    ['member order', '{"a":1,"b":{"c":2,"d":3}}', '{"b":{"d":3,"c":2},"a":1}'],
    ['spacing', '{"a":[1,2]}', ' {\t"a" :\n[ 1 , 2 ] } '],
    ['1.0 for 1', '{"a":1}', '{"a":1.0}'],
    ['1e2 for 100', '{"a":100}', '{"a":1e2}'],
    ['an escape for its character', '{"a":"é/"}', '{"a":"\\u00e9\\/"}'],
    ['-0 for 0', '{"a":0}', '{"a":-0}'],
  ])('%s: a replay', async (name, one, other) => {
    const first = await stage.orchestrator.decide(textOf(one, `same ${name}`));
    const again = await stage.orchestrator.decide(textOf(other, `same ${name}`));
    expect([first.status, again.status]).toEqual([201, 201]);
    expect(again.text).toBe(first.text);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
  });

  test.each([
    ['null for an absent member', '{"a":1}', '{"a":1,"b":null}'],
    ['composed for decomposed text', '{"a":"\u00e9"}', '{"a":"e\u0301"}'],
    ['"10.00" for "10.0"', '{"a":"10.00"}', '{"a":"10.0"}'],
    ['"1" for 1', '{"a":1}', '{"a":"1"}'],
    ['another case', '{"a":"x"}', '{"a":"X"}'],
    ['a space at the end', '{"a":"x"}', '{"a":"x "}'],
    ['another order in an array', '{"a":[1,2]}', '{"a":[2,1]}'],
    ['{} for []', '{"a":{}}', '{"a":[]}'],
  ])('%s: other content, another decision; under one client key a mismatch', async (name, one, other) => {
    const id = `other ${name}`;
    const replies = [
      await stage.orchestrator.decide(textOf(one, id)),
      await stage.orchestrator.decide(textOf(other, id)),
    ];
    expect(replies.map(({ status }) => status)).toEqual([201, 201]);
    expect(replies[0]?.body.contentKey).not.toBe(replies[1]?.body.contentKey);
    await stage.orchestrator.decide(textOf(one, `${id} again`), `key ${name}`.replaceAll(/[^a-z]/g, '-'));
    const reused = await stage.orchestrator.decide(
      textOf(other, `${id} again`),
      `key ${name}`.replaceAll(/[^a-z]/g, '-'),
    );
    expect([reused.status, reused.body.code]).toEqual([422, 'fingerprint-mismatch']);
  });

  test.each([
    ['action', { action: 'note.remove' }],
    ['subject type', { subject: { type: 'order', id: 'S' } }],
    ['subject', { subject: { type: 'case', id: 'T' } }],
    ['params', { params: {} }],
    ['model', { model: { id: 'm-2', version: '2026-09-01' } }],
    ['model version', { model: { id: 'm-1', version: '2026-09-02' } }],
    ['prompt template', { promptTemplateSha256: 'b'.repeat(64) }],
    ['retrieval snapshot', { retrievalSnapshotId: 'rs-15' }],
    ['policy version', { policyVersion: 'pol-8' }],
  ])('the same client key for another %s: 422, never a replay', async (name, changes) => {
    await stage.admin.put('/v1/actions/note.remove', { execution: 'transactional' });
    const asked = inputs({ subject: { type: 'case', id: 'S' }, params: { of: name } });
    const key = `reused-${name.replaceAll(' ', '-')}`;
    const first = await stage.orchestrator.decide({ inputs: asked }, key);
    const reused = await stage.orchestrator.decide({ inputs: { ...asked, ...changes } }, key);
    expect([first.status, reused.status, reused.body.code]).toEqual([201, 422, 'fingerprint-mismatch']);
    expect(reused.body.decisionId).toBe(first.body.decisionId);
  });

  test('evidence and rationale reworded, or a token renewed: a replay', async () => {
    const asked = fresh();
    const replies: Reply[] = [await stage.orchestrator.decide({ inputs: asked, evidence: { attempt: 1 } })];
    replies.push(await stage.orchestrator.decide({ inputs: asked, evidence: { rationale: 'said in other words' } }));
    const { body } = await stage.admin.post('/v1/credentials', { role: 'orchestrator', name: 'renewed' });
    const renewed = { authorization: `Bearer ${body.token}` };
    replies.push(await stage.orchestrator.post('/v1/decisions', { inputs: asked }, renewed));
    expect(new Set(replies.map(({ text }) => text)).size).toBe(1);
    expect(replies.map(({ status }) => status)).toEqual([201, 201, 201]);
  });

  test('a note added, changed or dropped: 422 that tells which decision stands', async () => {
    const asked = fresh();
    const first = await stage.orchestrator.decide({ inputs: asked, note: 'urgent' });
    for (const note of ['calm', undefined]) {
      const reply = await stage.orchestrator.decide({ inputs: asked, note });
      expect([reply.status, reply.body.code]).toEqual([422, 'fingerprint-mismatch']);
      expect(reply.body).toMatchObject({ decisionId: first.body.decisionId, state: 'completed', retryable: false });
    }
  });

  test('the fingerprint is the hash of the canonical inputs and note', async () => {
    const asked = fresh();
    const whole = { ...asked, tenantId: 'acme' };
    const noted = await stage.orchestrator.decide({ inputs: asked, note: 'urgent' }, 'noted');
    const record = await stage.orchestrator.get('/v1/idempotency-records/noted');
    expect(record.body.fingerprint).toBe(sha256Hex({ inputs: whole, note: 'urgent' }));
    const plain = fresh();
    const { body } = await stage.orchestrator.decide({ inputs: plain });
    const read = await stage.auditor.get(`/v1/decisions/${body.decisionId}`);
    expect(read.body.fingerprint).toBe(sha256Hex({ inputs: { ...plain, tenantId: 'acme' }, note: null }));
    expect(noted.status).toBe(201);
  });
});
