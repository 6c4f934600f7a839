import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Client, inputs, operator, type Reply, type Service } from '../support/index.js';
import { setStage, TRANSACTIONAL, until, type Stage } from '../support/stage.js';

type Role = 'operator' | 'admin' | 'orchestrator' | 'auditor';
const ROLES: readonly Role[] = ['operator', 'admin', 'orchestrator', 'auditor'];
const MICROSECONDS = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;

let stage: Stage;
let elsewhere: Service;
let callers: Record<Role, Client>;
beforeAll(async () => {
  stage = await setStage();
  elsewhere = await stage.addService();
  const { admin, orchestrator, auditor, service } = stage;
  const token = await operator(stage.database.url, 'create');
  callers = { operator: new Client(service.url, token), admin, orchestrator, auditor };
});
afterAll(() => stage?.clear());

const secretOf = (token: string): string => token.split('_').slice(2).join('_');
const issue = (body: Record<string, unknown>): Promise<Reply> => stage.admin.post('/v1/credentials', body);

describe('who may call which route', () => {
  let ordinal = 0;
  const ROUTES: readonly (readonly [string, (client: Client) => Promise<Reply>, readonly Role[], number])[] = [
    ['POST /v1/tenants', (c) => c.post('/v1/tenants', { tenant: `t-${(ordinal += 1)}` }), ['operator'], 201],
    ['POST /v1/credentials', (c) => c.post('/v1/credentials', { role: 'auditor', name: 'n' }), ['admin'], 201],
    ['GET /v1/credentials', (c) => c.get('/v1/credentials'), ['admin'], 200],
    ['DELETE /v1/credentials/{credentialId}', (c) => c.send('DELETE', '/v1/credentials/none'), ['admin'], 404],
    ['PUT /v1/actions/{action}', (c) => c.put('/v1/actions/note.add', TRANSACTIONAL), ['admin'], 200],
    ['GET /v1/actions', (c) => c.get('/v1/actions'), ['admin', 'orchestrator', 'auditor'], 200],
    ['GET /v1/actions/{action}', (c) => c.get('/v1/actions/note.add'), ['admin', 'orchestrator', 'auditor'], 200],
    ['POST /v1/decisions', (c) => c.decide({ inputs: inputs() }), ['orchestrator'], 201],
    [
      'POST /v1/decisions/batch',
      (c) => c.post('/v1/decisions/batch', { decisions: [{ inputs: inputs() }] }),
      ['orchestrator'],
      200,
    ],
    ['GET /v1/decisions', (c) => c.get('/v1/decisions'), ['admin', 'orchestrator', 'auditor'], 200],
    [
      'GET /v1/decisions/{decisionId}',
      (c) => c.get('/v1/decisions/00000000-0000-7000-8000-000000000000'),
      ['admin', 'orchestrator', 'auditor'],
      404,
    ],
    [
      'GET /v1/idempotency-records/{key}',
      (c) => c.get('/v1/idempotency-records/none'),
      ['admin', 'orchestrator', 'auditor'],
      404,
    ],
  ];
  const TABLE = ROUTES.flatMap(([name, send, allowed, status]) =>
    ROLES.map((role) => [name, role, allowed.includes(role) ? status : 403, send] as const),
  );

  test.each(TABLE)('%s by %s: %i', async (_name, role, status, send) => {
    const before = await stage.tally();
    const reply = await send(callers[role]);
    expect(reply.status).toBe(status);
    if (status !== 403) return;
    expect(reply.body).toMatchObject({ code: 'forbidden', retryable: false });
    expect(await stage.tally()).toEqual(before);
  });

  test.each(ROUTES)('%s without a credential: 401 and WWW-Authenticate: Bearer', async (_name, send) => {
    const reply = await send(new Client(stage.service.url));
    expect([reply.status, reply.body.code]).toEqual([401, 'unauthenticated']);
    expect(reply.headers.get('www-authenticate')).toBe('Bearer');
  });
});

describe('a bad credential', () => {
  const swap = (token: string): string => token.slice(0, -1) + (token.endsWith('A') ? 'B' : 'A');
  const idOf = (token: string): string => token.split('_').slice(0, 2).join('_');
  const BAD: readonly (readonly [string, () => string])[] = [
    ['no token', () => 'Bearer'],
    ['an empty token', () => 'Bearer '],
    ['no scheme', () => stage.tokens.admin],
    ['another scheme', () => `Basic ${Buffer.from(`a:${stage.tokens.admin}`).toString('base64')}`],
    ['another scheme with the token', () => `Token ${stage.tokens.admin}`],
    ['a word', () => 'Bearer secret'],
    ['another prefix', () => `Bearer ${stage.tokens.admin.replace('dlk_', 'dk_')}`],
    ['an id without a secret', () => `Bearer ${idOf(stage.tokens.admin)}`],
    ['an id with an empty secret', () => `Bearer ${idOf(stage.tokens.admin)}_`],
    ['a secret of another credential', () => `Bearer ${idOf(stage.tokens.admin)}_${secretOf(stage.tokens.auditor)}`],
    ['a secret that is cut short', () => `Bearer ${stage.tokens.admin.slice(0, -1)}`],
    ['a secret with something added', () => `Bearer ${stage.tokens.admin}A`],
    ['a secret with another last character', () => `Bearer ${swap(stage.tokens.admin)}`],
    ['an unknown id', () => `Bearer dlk_${'0'.repeat(20)}_${secretOf(stage.tokens.admin)}`],
    ['an id in upper case', () => `Bearer ${stage.tokens.admin.toUpperCase()}`],
    ['two tokens', () => `Bearer ${stage.tokens.admin} ${stage.tokens.auditor}`],
    ['a quote', () => `Bearer dlk_'_${secretOf(stage.tokens.admin)}`],
    ['10,000 characters', () => `Bearer dlk_${'a'.repeat(10_000)}`],
    [
      'the stored hash for the secret',
      () =>
        `Bearer ${idOf(stage.tokens.admin)}_${createHash('sha256').update(secretOf(stage.tokens.admin)).digest('base64url')}`,
    ],
  ];
  test.each(BAD)('%s: 401', async (_name, header) => {
    const client = new Client(stage.service.url);
    const reply = await client.get('/v1/credentials', { authorization: header() });
    expect([reply.status, reply.body.code]).toEqual([401, 'unauthenticated']);
    expect(reply.headers.get('www-authenticate')).toBe('Bearer');
  });
});

describe('tenants', () => {
  test('a new tenant comes with a working credential for each of its roles, shown this once', async () => {
    const made = await callers.operator.post('/v1/tenants', { tenant: 'globex' });
    expect(made.status).toBe(201);
    expect(made.body).toEqual({
      tenant: 'globex',
      credentials: {
        admin: expect.stringMatching(/^dlk_[^_]+_.+$/),
        orchestrator: expect.stringMatching(/^dlk_[^_]+_.+$/),
        auditor: expect.stringMatching(/^dlk_[^_]+_.+$/),
      },
    });
    const { admin, orchestrator, auditor } = made.body.credentials;
    await new Client(stage.service.url, admin).put('/v1/actions/note.add', TRANSACTIONAL);
    const decided = await new Client(stage.service.url, orchestrator).decide({ inputs: inputs() });
    expect(decided.body.key).toMatch(/^dk_globex_[0-9a-f]{40}$/);
    const read = await new Client(stage.service.url, auditor).get(`/v1/decisions/${decided.body.decisionId}`);
    expect(read.body.request.inputs.tenantId).toBe('globex');
    const again = await callers.operator.post('/v1/tenants', { tenant: 'globex' });
    expect([again.status, again.body.code, again.text.includes('dlk_')]).toEqual([409, 'tenant-exists', false]);
  });

  test.each(['a', '7', 'a-b', 'a--b', 'x'.repeat(20), '0-0'])('a slug may be %s', async (tenant) => {
    expect((await callers.operator.post('/v1/tenants', { tenant })).status).toBe(201);
  });

  test.each(['', '-a', 'a-', 'A', 'a_b', 'a.b', 'a b', 'é', 'x'.repeat(21), 'a\n', '*', 7, null, ['a']])(
    'a slug may not be %j',
    async (tenant) => {
      const reply = await callers.operator.post('/v1/tenants', { tenant });
      expect([reply.status, reply.body.code, reply.body.errors[0].pointer]).toEqual([
        400,
        'validation-failed',
        '/tenant',
      ]);
    },
  );
});

describe('credentials', () => {
  test('only a hash of the secret is stored', async () => {
    const { status, body } = await issue({ role: 'auditor', name: 'external audit' });
    expect([status, body]).toEqual([
      201,
      {
        credentialId: expect.any(String),
        role: 'auditor',
        name: 'external audit',
        token: expect.stringMatching(new RegExp(`^dlk_${body.credentialId}_`)),
        expiresAt: null,
      },
    ]);
    const [row] = await stage.database.query<{ secret_sha256: Buffer; whole: string }>(
      'SELECT secret_sha256, to_jsonb(c)::text AS whole FROM credential c WHERE credential_id = $1',
      [body.credentialId],
    );
    const secret = secretOf(body.token);
    expect(row?.secret_sha256.toString('hex')).toBe(createHash('sha256').update(secret).digest('hex'));
    expect(row?.whole).not.toContain(secret);
  });

  test('the list has every credential of the tenant and no secret, and tells when each was last used', async () => {
    const { body } = await issue({
      role: 'orchestrator',
      name: 'listed',
      expiresAt: '2099-01-02T03:04:05.678901+04:00',
    });
    expect(body.expiresAt).toBe('2099-01-01T23:04:05.678901Z');
    const listed = async (): Promise<Reply> => stage.admin.get('/v1/credentials');
    const find = (reply: Reply): Record<string, unknown> =>
      reply.body.items.find((one: { credentialId: string }) => one.credentialId === body.credentialId);
    const first = await listed();
    expect(find(first)).toMatchObject({
      role: 'orchestrator',
      name: 'listed',
      expiresAt: body.expiresAt,
      lastUsedAt: null,
    });
    await new Client(stage.service.url, body.token).get('/v1/actions');
    const used = await until(listed, (reply) => find(reply)['lastUsedAt'] !== null, 60_000);
    expect(find(used)['lastUsedAt']).toMatch(MICROSECONDS);
    for (const hidden of [secretOf(body.token), secretOf(stage.tokens.admin), 'dlk_', 'token', 'sha256'])
      expect(used.text).not.toContain(hidden);
  });

  test.each([
    ['a role that a tenant cannot give', { role: 'operator', name: 'n' }, '/role'],
    ['an unknown role', { role: 'owner', name: 'n' }, '/role'],
    ['no role', { name: 'n' }, '/role'],
    ['no name', { role: 'auditor' }, '/name'],
    ['an empty name', { role: 'auditor', name: '' }, '/name'],
    ['a long name', { role: 'auditor', name: 'x'.repeat(256) }, '/name'],
    ['a time that is none', { role: 'auditor', name: 'n', expiresAt: 'tomorrow' }, '/expiresAt'],
    ['a day that is none', { role: 'auditor', name: 'n', expiresAt: '2099-02-30T00:00:00Z' }, '/expiresAt'],
    ['a time without an offset', { role: 'auditor', name: 'n', expiresAt: '2099-01-01T00:00:00' }, '/expiresAt'],
    ['a tenant', { role: 'auditor', name: 'n', tenant: 'globex' }, '/tenant'],
  ])('%s: 400 that names the place', async (_name, body, pointer) => {
    const reply = await issue(body);
    expect([reply.status, reply.body.code, reply.body.errors[0].pointer]).toEqual([400, 'validation-failed', pointer]);
  });

  test('one that is revoked is refused from the next request on here, and within a second elsewhere', async () => {
    const { body } = await issue({ role: 'auditor', name: 'short-lived' });
    const here = new Client(stage.service.url, body.token);
    const there = new Client(elsewhere.url, body.token);
    expect([(await here.get('/v1/actions')).status, (await there.get('/v1/actions')).status]).toEqual([200, 200]);
    const revoked = await stage.admin.send('DELETE', `/v1/credentials/${body.credentialId}`);
    const revokedAt = performance.now();
    expect([revoked.status, revoked.text]).toEqual([204, '']);
    expect((await here.get('/v1/actions')).status).toBe(401);
    const refused = await until(
      () => there.get('/v1/actions'),
      ({ status }) => status === 401,
      1_000,
    );
    expect(refused.status).toBe(401);
    expect(performance.now() - revokedAt).toBeLessThanOrEqual(1_000);
  });

  test('one whose time is over is refused on every instance', async () => {
    const [soon] = await stage.database.query<{ at: string }>(
      `SELECT to_char((now() + interval '2 seconds') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at`,
    );
    const { body } = await issue({ role: 'auditor', name: 'brief', expiresAt: soon?.at });
    expect(body.expiresAt).toBe(soon?.at);
    for (const url of [stage.service.url, elsewhere.url]) {
      const client = new Client(url, body.token);
      const refused = await until(
        () => client.get('/v1/actions'),
        ({ status }) => status !== 200,
      );
      expect([refused.status, refused.body.code]).toEqual([401, 'unauthenticated']);
      const [over] = await stage.database.query<{ over: boolean }>('SELECT now() >= $1::timestamptz AS over', [
        soon?.at,
      ]);
      expect(over?.over).toBe(true);
    }
  });
});
