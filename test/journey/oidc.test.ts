import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Client, inputs } from '../support/index.js';
import { AUDIENCE, seconds, startIssuer, withHeader, withPayload, type Issuer, type Wish } from '../support/issuer.js';
import { setStage, type Stage } from '../support/stage.js';

let issuer: Issuer;
let stranger: Issuer;
let stage: Stage;
const sent: string[] = [];

beforeAll(async () => {
  issuer = await startIssuer();
  stranger = await startIssuer();
  await issuer.addKey('RS256');
  await stranger.addKey('RS256');
  stage = await setStage({ env: { OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: AUDIENCE } });
});
afterAll(async () => {
  await stage?.clear();
  await Promise.all([issuer?.down(), stranger?.down()]);
});

/** A caller with a token of the issuer. */
async function caller(claims: Wish['claims'] = {}, wish: Wish = {}): Promise<Client> {
  return bearer(await issuer.token({ ...wish, claims }));
}

function bearer(jwt: string, url = stage.service.url): Client {
  sent.push(jwt);
  return new Client(url, jwt);
}

describe('a good token', () => {
  const ROLES = [
    ['admin', 200, 403],
    ['orchestrator', 403, 201],
    ['auditor', 403, 403],
  ] as const;
  test.each(ROLES)('of the role %s may what the role may', async (role, credentials, decision) => {
    const client = await caller({ sub: `as-${role}`, role });
    expect((await client.get('/v1/actions')).status).toBe(200);
    expect((await client.get('/v1/credentials')).status).toBe(credentials);
    expect((await client.decide({ inputs: inputs({ subject: { type: 'case', id: role } }) })).status).toBe(decision);
  });

  const WISHES: readonly (readonly [string, Wish | (() => Wish)])[] = [
    ['whose audience is a list', { claims: { aud: ['elsewhere', AUDIENCE] } }],
    ['whose role is a list with roles of other systems', { claims: { role: ['offline_access', 'auditor', 7] } }],
    ['whose type is JWT', { header: { typ: 'JWT' } }],
    ['whose type is written out', { header: { typ: 'application/at+jwt' } }],
    ['without a type', { header: { typ: undefined } }],
    ['that expired a moment ago', () => ({ claims: { exp: seconds() } })],
    ['of a subject in another script', { claims: { sub: 'Zoë 東京 🙂' } }],
  ];
  test.each(WISHES)('%s is taken', async (_name, wish) => {
    const jwt = await issuer.token(typeof wish === 'function' ? wish() : wish);
    expect((await bearer(jwt).get('/v1/actions')).status).toBe(200);
  });

  test.each(['RS512', 'PS256', 'ES256', 'ES384', 'EdDSA'])('signed with %s is taken', async (alg) => {
    const later = await stage.addService();
    const key = await issuer.addKey(alg);
    const reply = await bearer(await issuer.token({ key }), later.url).get('/v1/actions');
    issuer.withdraw(key);
    await later.kill();
    expect(reply.status).toBe(200);
  });
});

describe('a bad token', () => {
  const hmac = (key: string): Wish['key'] => ({
    kid: 'k',
    alg: 'HS256',
    privateKey: new TextEncoder().encode(key),
    jwk: {},
  });
  const published = async (): Promise<{ keys: Record<string, unknown>[] }> =>
    (await (await fetch(`${issuer.url}/keys`)).json()) as { keys: Record<string, unknown>[] };
  const good = (wish: Wish = {}): Promise<string> => issuer.token(wish);
  const claiming = (claims: Wish['claims']) => (): Promise<string> => good({ claims: claims ?? {} });

  const BAD: readonly (readonly [string, () => Promise<string>])[] = [
    ['unsigned, by the algorithm none', async () => withHeader(await good(), { alg: 'none', typ: 'JWT' }, false)],
    ['by none in other letters', async () => withHeader(await good(), { alg: 'nOnE' }, false)],
    ['by none with a signature', async () => withHeader(await good(), { alg: 'none' })],
    ['signed with HS256', () => good({ key: hmac('a secret of somebody’s own, long enough for it') })],
    [
      'signed with HS256 and the public key',
      async () => {
        const { keys } = await published();
        return good({ key: hmac(JSON.stringify(keys[0])), header: { kid: keys[0]?.['kid'] } });
      },
    ],
    ['of another issuer', () => stranger.token()],
    ['of another issuer who claims to be ours', () => stranger.token({ claims: { iss: issuer.url } })],
    ['without an issuer', claiming({ iss: undefined })],
    ['of our issuer with a slash', async () => claiming({ iss: `${issuer.url}/` })()],
    ['of a list of issuers', async () => claiming({ iss: [issuer.url] })()],
    ['for another audience', claiming({ aud: 'elsewhere' })],
    ['for a list of other audiences', claiming({ aud: ['elsewhere', `${AUDIENCE}-2`] })],
    ['without an audience', claiming({ aud: undefined })],
    ['that has expired', async () => claiming({ exp: seconds() - 10 })()],
    ['that expires at no time', claiming({ exp: undefined })],
    ['that expires at a text', claiming({ exp: 'never' })],
    ['that is not valid yet', async () => claiming({ nbf: seconds() + 30 })()],
    ['that is valid from a text on', claiming({ nbf: 'now' })],
    ['signed with a key that is not published', async () => good({ key: await issuer.addKey('RS256', false) })],
    ['that names an unknown key', () => good({ header: { kid: 'unknown' } })],
    ['whose key is for another algorithm', async () => withHeader(await good(), { alg: 'ES256' })],
    [
      'that brings its own key',
      async () => withHeader(await good(), { alg: 'RS256', jwk: (await published()).keys[0] }),
    ],
    ['whose claims were changed', async () => withPayload(await good(), { role: 'admin' })],
    ['whose signature was cut', async () => (await good()).slice(0, -8)],
    ['whose signature is missing', async () => `${(await good()).split('.').slice(0, 2).join('.')}.`],
    ['with an extension that is not known', async () => withHeader(await good(), { alg: 'RS256', crit: ['x'], x: 1 })],
    ['of a type for something else', () => good({ header: { typ: 'logout+jwt' } })],
    ['without a tenant', claiming({ tenant: undefined })],
    ['of a tenant that is not there', claiming({ tenant: 'nobody' })],
    ['of the tenant *', claiming({ tenant: '*' })],
    ['of a tenant that cannot be', claiming({ tenant: 'acme\u0000' })],
    ['of a list of tenants', claiming({ tenant: ['acme'] })],
    ['without a role', claiming({ role: undefined })],
    ['of an unknown role', claiming({ role: 'owner' })],
    ['of the role operator', claiming({ role: 'operator' })],
    ['of the role operator without a tenant', claiming({ role: 'operator', tenant: '*' })],
    ['of two roles', claiming({ role: ['admin', 'auditor'] })],
    ['of a list without a role', claiming({ role: ['offline_access'] })],
    ['of a role within an object', claiming({ role: { admin: true } })],
    ['without a subject', claiming({ sub: undefined })],
    ['of an empty subject', claiming({ sub: '' })],
    ['of a numbered subject', claiming({ sub: 7 })],
    ['of a subject of 256 characters', claiming({ sub: 'x'.repeat(256) })],
    ['of a subject with U+0000', claiming({ sub: 'a\u0000' })],
    ['of a subject with half a character', claiming({ sub: 'a\ud800' })],
    ['that is three dots of nothing', async () => 'a.b.c'],
    ['whose header is no JSON', async () => `e30x.${(await good()).split('.')[1]}.AA`],
    ['whose payload is a list', async () => withHeader(['e30', 'W10', 'AA'].join('.'), { alg: 'RS256' })],
    ['that is encrypted', async () => 'e30.AA.AA.AA.AA'],
  ];
  test.each(BAD)('%s: 401, and no credential comes of it', async (_name, make) => {
    const before = await stage.database.count('SELECT count(*) FROM credential');
    const reply = await bearer(await make()).get('/v1/actions');
    expect([reply.status, reply.body.code, reply.body.retryable]).toEqual([401, 'unauthenticated', false]);
    expect(reply.headers.get('www-authenticate')).toMatch(
      /^Bearer(| error="invalid_token", error_description="[^"\\]+")$/,
    );
    expect(await stage.database.count('SELECT count(*) FROM credential')).toBe(before);
  });

  test('says what is wrong with it', async () => {
    const reply = await (await caller({ exp: seconds() - 60 })).get('/v1/actions');
    expect(reply.body.detail).toBe('The token has expired.');
    expect(reply.headers.get('www-authenticate')).toContain('error_description="The token has expired."');
  });

  test('any number of unknown keys does not make a flood at the issuer', async () => {
    await (await caller()).get('/v1/actions');
    const before = issuer.asked('/keys');
    const began = performance.now();
    for (let n = 0; n < 50; n += 1) await (await caller({}, { header: { kid: `k-${n}` } })).get('/v1/actions');
    // Once for the five seconds that the keys are taken as they are, and once for each that began meanwhile.
    expect(issuer.asked('/keys') - before).toBeLessThanOrEqual(1 + Math.ceil((performance.now() - began) / 5_000));
  });
});

describe('where no provider is set', () => {
  test('a JWT is a bad credential like any other', async () => {
    const without = await stage.addService({ OIDC_ISSUER: '', OIDC_AUDIENCE: '' });
    const reply = await bearer(await issuer.token(), without.url).get('/v1/actions');
    await without.kill();
    expect([reply.status, reply.body.code, reply.headers.get('www-authenticate')]).toEqual([
      401,
      'unauthenticated',
      'Bearer',
    ]);
  });
});

test('no token is in the log', () => {
  expect(sent.length).toBeGreaterThan(50);
  for (const jwt of sent.filter(({ length }) => length > 20))
    expect(stage.service.output()).not.toContain(jwt.split('.')[1]?.slice(0, 40));
});
