import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readSettings, SettingError } from '#database';
import { Client, type Reply, type Service } from '../support/index.js';
import { AUDIENCE, startIssuer, type Issuer, type Wish } from '../support/issuer.js';
import { setStage, until, type Stage } from '../support/stage.js';

let issuer: Issuer;
let stage: Stage;
beforeAll(async () => {
  issuer = await startIssuer();
  await issuer.addKey('ES256');
  stage = await setStage();
});
afterAll(async () => {
  await stage?.clear();
  await issuer?.down();
});

/** A service that knows no key yet. */
const fresh = (env: Readonly<Record<string, string>> = {}): Promise<Service> =>
  stage.addService({ OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: AUDIENCE, ...env });
const call = async (service: Service, wish: Wish = {}): Promise<Reply> =>
  new Client(service.url, await issuer.token(wish)).get('/v1/actions');

describe('while the keys cannot be had', () => {
  function expectUnavailable(reply: Reply): void {
    expect([reply.status, reply.body.code, reply.body.retryable]).toEqual([503, 'unavailable', true]);
    expect(reply.headers.get('retry-after')).toBe('1');
  }

  test('a token cannot be judged: 503 until the issuer is there, without a restart; secrets work all the while', async () => {
    await issuer.down();
    const service = await fresh();
    expectUnavailable(await call(service));
    expect((await new Client(service.url, stage.tokens.auditor).get('/v1/actions')).status).toBe(200);
    for (const claims of [{ iss: 'https://elsewhere.example' }, { iss: undefined }])
      expect((await call(service, { claims })).status).toBe(401);
    expect((await new Client(service.url, 'a.b.c').get('/v1/actions')).status).toBe(401);
    await issuer.up();
    expect((await call(service)).status).toBe(200);
    const line = `The keys of the identity provider ${issuer.url} cannot be had`;
    expect(
      await until(
        async () => service.output(),
        (text) => text.includes(line),
      ),
    ).toContain(line);
    await service.kill();
  });

  test('a key that is known is used on, and an unknown one is not judged', async () => {
    const service = await fresh();
    expect((await call(service)).status).toBe(200);
    await issuer.down();
    expect((await call(service)).status).toBe(200);
    const unknown = await until(
      () => call(service, { header: { kid: 'unknown' } }),
      ({ status }) => status === 503,
      15_000,
    );
    expectUnavailable(unknown);
    expect((await call(service)).status).toBe(200);
    await issuer.up();
    await service.kill();
  });

  describe('because the provider is not set up as it should be', () => {
    let service: Service;
    beforeAll(async () => {
      service = await fresh();
    });
    afterAll(() => service?.kill());

    const BROKEN: readonly (readonly [name: string, breakIt: () => void, why: string])[] = [
      [
        'the metadata is of another issuer',
        () => (issuer.metadata = { issuer: 'https://elsewhere.example' }),
        'not of the issuer that OIDC_ISSUER names',
      ],
      ['the metadata names no keys', () => (issuer.metadata = { jwks_uri: undefined }), 'names no jwks_uri'],
      ['the keys come over http', () => (issuer.metadata = { jwks_uri: 'http://192.0.2.1/keys' }), 'names no jwks_uri'],
      ['the keys come from a file', () => (issuer.metadata = { jwks_uri: 'file:///etc/passwd' }), 'names no jwks_uri'],
      ['the keys are an error', () => (issuer.keysAnswer = { status: 500, body: '{}' }), 'Expected 200 OK'],
      ['the keys are no JSON', () => (issuer.keysAnswer = { status: 200, body: '<html>' }), 'Failed to parse'],
      ['the keys are no key set', () => (issuer.keysAnswer = { status: 200, body: '{"keys":{}}' }), 'malformed'],
      [
        'the keys are elsewhere',
        () => (issuer.keysAnswer = { status: 302, body: '', headers: { location: `${issuer.url}/keys` } }),
        'Expected 200 OK',
      ],
    ];
    test.each(BROKEN)('%s: 503, and the log says so', async (_name, breakIt, why) => {
      const said = service.output().length;
      breakIt();
      const reply = await call(service);
      [issuer.metadata, issuer.keysAnswer] = [{}, null];
      expectUnavailable(reply);
      const line = await until(
        async () => service.output().slice(said),
        (text) => text.includes('cannot be had'),
      );
      expect(line).toContain(why);
    });

    test('once it is, tokens are taken', async () => {
      expect((await call(service)).status).toBe(200);
    });
  });
});

describe('keys', () => {
  test('are fetched once, whoever calls', async () => {
    const service = await fresh();
    const before = [issuer.asked('/.well-known/openid-configuration'), issuer.asked('/keys')];
    const replies = await Promise.all(Array.from({ length: 20 }, () => call(service)));
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
    await call(service);
    expect([issuer.asked('/.well-known/openid-configuration'), issuer.asked('/keys')]).toEqual(
      before.map((times) => times + 1),
    );
    await service.kill();
  });

  test('that are new are fetched when a token names one', async () => {
    const service = await fresh();
    expect((await call(service)).status).toBe(200);
    const key = await issuer.addKey('RS256');
    const reply = await until(
      () => call(service, { key }),
      ({ status }) => status === 200,
      15_000,
    );
    expect([reply.status, (await call(service)).status]).toEqual([200, 200]);
    issuer.withdraw(key);
    await service.kill();
  });
});

describe('settings', () => {
  test('the claims may have other names', async () => {
    const service = await fresh({
      OIDC_TENANT_CLAIM: 'https://bank.example/tenant',
      OIDC_ROLE_CLAIM: 'ledger.roles',
    });
    const claims = { 'https://bank.example/tenant': 'acme', 'ledger.roles': ['auditor'] };
    expect((await call(service, { claims: { ...claims, tenant: 'nobody', role: 'owner' } })).status).toBe(200);
    expect((await call(service)).body.detail).toContain('https://bank.example/tenant');
    await service.kill();
  });

  const BAD: readonly (readonly [name: string, Readonly<Record<string, string>>])[] = [
    ['OIDC_AUDIENCE', { OIDC_ISSUER: 'https://login.example.com' }],
    ['OIDC_ISSUER', { OIDC_AUDIENCE: AUDIENCE }],
    ...[
      'login.example.com',
      'http://login.example.com',
      'http://127.0.0.1.example.com',
      'ftp://127.0.0.1',
      'https://login.example.com/?a=b',
      'https://login.example.com/#a',
      'https://me:hunter2@login.example.com',
      'https://login.example.com/a b',
      `https://login.example.com/${'x'.repeat(512)}`,
    ].map((url) => ['OIDC_ISSUER', { OIDC_ISSUER: url, OIDC_AUDIENCE: AUDIENCE }] as const),
    ['OIDC_TENANT_CLAIM', { OIDC_TENANT_CLAIM: 'a b' }],
    ['OIDC_ROLE_CLAIM', { OIDC_ROLE_CLAIM: 'a"b' }],
  ];
  test.each(BAD)('a bad %s is refused by its name: %j', (name, env) => {
    const read = (): unknown => readSettings(env);
    expect(read).toThrow(SettingError);
    expect(read).toThrow(new RegExp(`^${name} must be (?!.*hunter2)`));
  });

  test.each([
    'https://login.example.com',
    'https://login.example.com/',
    'https://login.example.com:8443/realms/bank',
    'http://localhost:8080/realms/bank',
    'http://127.0.0.1:8080',
    'http://[::1]:8080',
  ])('%s may be an issuer, and is kept to the letter', (issuer) => {
    expect(readSettings({ OIDC_ISSUER: issuer, OIDC_AUDIENCE: AUDIENCE }).identityProvider).toEqual({
      issuer,
      audience: AUDIENCE,
      tenantClaim: 'tenant',
      roleClaim: 'role',
    });
  });

  test('without an issuer and an audience there is no provider', () => {
    expect(readSettings({ OIDC_TENANT_CLAIM: 'org' }).identityProvider).toBeNull();
  });
});
