import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Client, inputs, operator, type Reply } from '../support/index.js';
import { sendRaw } from '../support/raw.js';
import { setStage, TRANSACTIONAL, type Stage } from '../support/stage.js';

const BODY_BYTES = 256 * 1024;
const MINTED = /^[!-~]{1,128}$/;

let stage: Stage;
beforeAll(async () => {
  stage = await setStage({
    actions: { 'note.add': TRANSACTIONAL, 'sum.pay': { ...TRANSACTIONAL, paramsSchema: { required: ['amount'] } } },
  });
});
afterAll(() => stage?.clear());

let ordinal = 0;
const fresh = (changes: Record<string, unknown> = {}): Record<string, unknown> =>
  inputs({ subject: { type: 'case', id: `g-${(ordinal += 1)}` }, ...changes });
/** How many rows there are of everything that a request could record. */
const recorded = (): Promise<number> =>
  stage.database.count(
    `SELECT (SELECT count(*) FROM attempt) + (SELECT count(*) FROM decision_record) + (SELECT count(*) FROM idempotency_record)
          + (SELECT count(*) FROM bound_key) + (SELECT count(*) FROM effect) + (SELECT count(*) FROM ledger_entry)`,
  );

describe('x-request-id', () => {
  const ANSWERS: readonly (readonly [string, (headers: Record<string, string>) => Promise<Reply>, number])[] = [
    ['a health check', (h) => new Client(stage.service.url).get('/healthz', h), 200],
    ['a list', (h) => stage.auditor.get('/v1/decisions', h), 200],
    ['a decision', (h) => stage.orchestrator.post('/v1/decisions', { inputs: fresh() }, h), 201],
    ['a batch', (h) => stage.orchestrator.post('/v1/decisions/batch', { decisions: [{ inputs: fresh() }] }, h), 200],
    ['malformed bytes', (h) => stage.orchestrator.post('/v1/decisions', '{', h), 400],
    ['a broken rule', (h) => stage.orchestrator.post('/v1/decisions', {}, h), 400],
    ['a bad parameter', (h) => stage.auditor.get('/v1/decisions?foo=1', h), 400],
    ['a path that cannot be decoded', (h) => stage.auditor.get('/v1/decisions/%zz', h), 400],
    ['no credential', (h) => new Client(stage.service.url).get('/v1/decisions', h), 401],
    ['another role', (h) => stage.auditor.post('/v1/decisions', { inputs: fresh() }, h), 403],
    ['no such route', (h) => stage.auditor.get('/v1/nothing', h), 404],
    ['another method', (h) => stage.auditor.send('PATCH', '/v1/decisions', { headers: h }), 405],
    ['a large body', (h) => stage.orchestrator.post('/v1/decisions', ' '.repeat(BODY_BYTES + 1), h), 413],
    [
      'another media type',
      (h) => stage.orchestrator.post('/v1/decisions', '{}', { ...h, 'content-type': 'text/plain' }),
      415,
    ],
    [
      'an unknown action',
      (h) => stage.orchestrator.post('/v1/decisions', { inputs: fresh({ action: 'no.such' }) }, h),
      422,
    ],
  ];

  test.each(ANSWERS)('is the caller’s, or minted, on %s; a problem carries it too', async (_name, send, status) => {
    const own = await send({ 'x-request-id': 'mine-1' });
    const minted = await send({});
    expect([own.status, minted.status]).toEqual([status, status]);
    expect(own.headers.get('x-request-id')).toBe('mine-1');
    expect(minted.headers.get('x-request-id')).toMatch(MINTED);
    if (status < 400) return;
    expect(own.headers.get('content-type')).toContain('application/problem+json');
    for (const { body, headers } of [own, minted]) {
      expect(body.requestId).toBe(headers.get('x-request-id'));
      expect(body).toMatchObject({
        type: `urn:decision-ledger:problem:${body.code}`,
        title: expect.any(String),
        status,
        detail: expect.any(String),
        code: expect.any(String),
        retryable: false,
      });
      if (status === 400) expect(body.errors[0]).toEqual({ pointer: expect.any(String), detail: expect.any(String) });
    }
  });

  test.each(['a', '!~', 'x'.repeat(128), '"quoted", with; signs'.replaceAll(' ', '')])('may be %s', async (id) => {
    expect((await stage.auditor.get('/v1/actions', { 'x-request-id': id })).headers.get('x-request-id')).toBe(id);
  });

  test.each(['x'.repeat(129), 'a b', 'a\tb', '\u00e9', ''])('is minted instead of %j', async (id) => {
    const reply = await sendRaw(stage.service.url, ['GET /healthz HTTP/1.1', `x-request-id: ${id}`]);
    expect(reply.status).toBe(200);
    expect(reply.headers.get('x-request-id')).toMatch(MINTED);
    expect(reply.headers.get('x-request-id')).not.toBe(id);
  });
});

describe('order of checks: size and media type, credential, role, bytes, shape, then the table', () => {
  const large = ' '.repeat(BODY_BYTES + 1);
  const CASES: readonly (readonly [string, string, string | null, string, string])[] = [
    ['size before credential', large, null, 'application/json', 'too-large'],
    ['size before role', large, 'auditor', 'application/json', 'too-large'],
    ['media type before credential', '{', null, 'text/plain', 'unsupported-media-type'],
    ['media type before role', '{', 'auditor', 'application/x-www-form-urlencoded', 'unsupported-media-type'],
    ['credential before bytes', '{', null, 'application/json', 'unauthenticated'],
    ['role before bytes', '{', 'auditor', 'application/json', 'forbidden'],
    ['role before shape', '{}', 'admin', 'application/json', 'forbidden'],
    ['bytes before shape', '{"surplus":1,"surplus":2}', 'orchestrator', 'application/json', 'malformed-request'],
    [
      'shape before the table',
      JSON.stringify({ inputs: inputs({ action: 'no.such', surplus: 1 }) }),
      'orchestrator',
      'application/json',
      'validation-failed',
    ],
  ];
  test.each(CASES)('%s', async (_name, body, role, type, code) => {
    const token = role === null ? null : stage.tokens[role as 'admin'];
    const reply = await new Client(stage.service.url, token).post('/v1/decisions', body, { 'content-type': type });
    expect(reply.body.code).toBe(code);
  });
});

describe('routes and methods', () => {
  test.each(['/', '/v1', '/v2/decisions', '/v1/decision', '/v1/decisions/x/y', '/V1/decisions', '/v1/tenants/acme'])(
    '%s: 404',
    async (path) => {
      const reply = await stage.admin.get(path);
      expect([reply.status, reply.body.code]).toEqual([404, 'not-found']);
    },
  );

  test.each([
    ['GET', '/v1/tenants', ['POST']],
    ['PUT', '/v1/credentials', ['GET', 'POST']],
    ['GET', '/v1/credentials/abc', ['DELETE']],
    ['DELETE', '/v1/actions', ['GET']],
    ['POST', '/v1/actions/note.add', ['GET', 'PUT']],
    ['DELETE', '/v1/actions/note.add', ['GET', 'PUT']],
    ['DELETE', '/v1/decisions', ['GET', 'POST']],
    ['PATCH', '/v1/decisions', ['GET', 'POST']],
    ['PUT', '/v1/decisions/batch', ['POST']],
    ['DELETE', '/v1/decisions/00000000-0000-7000-8000-000000000000', ['GET']],
    ['DELETE', '/v1/idempotency-records/k', ['GET']],
    ['POST', '/healthz', ['GET']],
  ])('%s %s: 405 with Allow', async (method, path, allowed) => {
    const reply = await stage.admin.send(method, path);
    expect([reply.status, reply.body.code]).toEqual([405, 'method-not-allowed']);
    expect((reply.headers.get('allow') ?? '').split(/,\s*/)).toEqual(expect.arrayContaining(allowed));
    expect(reply.headers.get('allow')).not.toContain(method);
  });
});

describe('an unknown query parameter is 400 and named, never ignored', () => {
  const ROUTES: readonly (readonly [string, (query: string) => Promise<Reply>])[] = [
    [
      'POST /v1/tenants',
      async (q) => {
        const token = await operator(stage.database.url, 'create');
        return new Client(stage.service.url, token).post(`/v1/tenants?${q}`, { tenant: 'surplus' });
      },
    ],
    ['POST /v1/credentials', (q) => stage.admin.post(`/v1/credentials?${q}`, { role: 'auditor', name: 'n' })],
    ['GET /v1/credentials', (q) => stage.admin.get(`/v1/credentials?${q}`)],
    [
      'DELETE /v1/credentials/{credentialId}',
      async (q) => {
        const { body } = await stage.admin.post('/v1/credentials', { role: 'auditor', name: 'kept' });
        return stage.admin.send('DELETE', `/v1/credentials/${body.credentialId}?${q}`);
      },
    ],
    ['PUT /v1/actions/{action}', (q) => stage.admin.put(`/v1/actions/note.query?${q}`, TRANSACTIONAL)],
    ['GET /v1/actions', (q) => stage.auditor.get(`/v1/actions?${q}`)],
    ['GET /v1/actions/{action}', (q) => stage.auditor.get(`/v1/actions/note.add?${q}`)],
    ['POST /v1/decisions', (q) => stage.orchestrator.post(`/v1/decisions?${q}`, { inputs: fresh() })],
    [
      'POST /v1/decisions/batch',
      (q) => stage.orchestrator.post(`/v1/decisions/batch?${q}`, { decisions: [{ inputs: fresh() }] }),
    ],
    ['GET /v1/decisions', (q) => stage.auditor.get(`/v1/decisions?${q}`)],
    ['GET /v1/idempotency-records/{key}', (q) => stage.auditor.get(`/v1/idempotency-records/query-key?${q}`)],
    [
      'GET /v1/decisions/{decisionId}',
      async (q) => {
        const { body } = await stage.auditor.get('/v1/decisions?key=query-key');
        return stage.auditor.get(`/v1/decisions/${body.items[0].decisionId}?${q}`);
      },
    ],
  ];
  test.each(ROUTES)('%s', async (_name, send) => {
    await stage.orchestrator.decide({ inputs: inputs() }, 'query-key');
    const before = await recorded();
    const reply = await send('surplus=1');
    expect([reply.status, reply.body?.code]).toEqual([400, 'validation-failed']);
    expect(reply.body.errors.map((one: { pointer: string }) => one.pointer)).toEqual(['surplus']);
    expect(await recorded()).toBe(before);
  });
});

describe('nothing is recorded, and the corrected request may use the same key', () => {
  const CASES: readonly (readonly [string, number, (key: string) => Promise<Reply>])[] = [
    ['malformed-request', 400, (key) => stage.orchestrator.decide('{"inputs":', key)],
    ['validation-failed', 400, (key) => stage.orchestrator.decide({ inputs: { ...fresh(), policyVersion: '' } }, key)],
    [
      'validation-failed',
      400,
      (key) => stage.orchestrator.decide({ inputs: fresh({ action: 'sum.pay', params: {} }) }, key),
    ],
    [
      'unauthenticated',
      401,
      (key) => new Client(stage.service.url, `${stage.tokens.orchestrator}x`).decide({ inputs: fresh() }, key),
    ],
    ['forbidden', 403, (key) => stage.admin.decide({ inputs: fresh() }, key)],
    ['tenant-mismatch', 403, (key) => stage.orchestrator.decide({ inputs: fresh({ tenantId: 'globex' }) }, key)],
    [
      'not-found',
      404,
      (key) => stage.orchestrator.post('/v1/decision', { inputs: fresh() }, { 'idempotency-key': key }),
    ],
    [
      'method-not-allowed',
      405,
      (key) =>
        stage.orchestrator.send('PUT', '/v1/decisions', {
          body: { inputs: fresh() },
          headers: { 'idempotency-key': key },
        }),
    ],
    [
      'too-large',
      413,
      (key) => stage.orchestrator.decide({ inputs: fresh({ params: { t: 'x'.repeat(BODY_BYTES) } }) }, key),
    ],
    [
      'unsupported-media-type',
      415,
      (key) =>
        stage.orchestrator.post('/v1/decisions', JSON.stringify({ inputs: fresh() }), {
          'idempotency-key': key,
          'content-type': 'text/json',
        }),
    ],
    ['unknown-action', 422, (key) => stage.orchestrator.decide({ inputs: fresh({ action: 'no.such' }) }, key)],
  ];
  test.each(CASES)('%s (%i)', async (code, status, send) => {
    const key = `corrected-${(ordinal += 1)}`;
    const before = await recorded();
    const reply = await send(key);
    expect([reply.status, reply.body.code]).toEqual([status, code]);
    expect(await recorded()).toBe(before);
    expect((await stage.auditor.get(`/v1/idempotency-records/${key}`)).status).toBe(404);
    const corrected = await stage.orchestrator.decide({ inputs: fresh() }, key);
    expect([corrected.status, corrected.headers.get('idempotent-replayed')]).toEqual([201, null]);
  });

  test('key-derivation-mismatch (422)', async () => {
    const asked = fresh();
    const before = await recorded();
    const reply = await stage.orchestrator.decide({ inputs: asked }, `dk_acme_${'f'.repeat(40)}`);
    expect([reply.status, reply.body.code, await recorded()]).toEqual([422, 'key-derivation-mismatch', before]);
    expect((await stage.orchestrator.decide({ inputs: asked })).status).toBe(201);
  });
});
