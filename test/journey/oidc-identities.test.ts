import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Client, inputs, type Reply } from '../support/index.js';
import { AUDIENCE, startIssuer, type Issuer, type Wish } from '../support/issuer.js';
import { setStage, until, type Cast, type Stage } from '../support/stage.js';

let issuer: Issuer;
let stage: Stage;
let other: Cast;
beforeAll(async () => {
  issuer = await startIssuer();
  await issuer.addKey('RS256');
  stage = await setStage({ env: { OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: AUDIENCE } });
  other = await stage.addTenant('globex');
});
afterAll(async () => {
  await stage?.clear();
  await issuer?.down();
});

const bearer = (jwt: string, url = stage.service.url): Client => new Client(url, jwt);

/** A caller with a token of the issuer. */
const caller = async (claims: Wish['claims'] = {}): Promise<Client> => bearer(await issuer.token({ claims }));

const listed = async (cast: Cast = stage): Promise<Record<string, string>[]> =>
  (await cast.admin.get('/v1/credentials')).body.items;
const rowsOf = async (subject: string, cast: Cast = stage): Promise<Record<string, string>[]> =>
  (await listed(cast)).filter(({ name }) => name === subject);

describe('the credential of an identity', () => {
  test('is made once, however many calls come first at once, and by two instances', async () => {
    const elsewhere = await stage.addService();
    const jwt = await issuer.token({ claims: { sub: 'at-once' } });
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        bearer(jwt, n % 2 === 0 ? stage.service.url : elsewhere.url).get('/v1/actions'),
      ),
    );
    await elsewhere.kill();
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
    expect(await rowsOf('at-once')).toEqual([
      expect.objectContaining({ role: 'orchestrator', issuer: issuer.url, expiresAt: null }),
    ]);
  });

  test('is who the ledger says decided, and who the attempts and the access log say asked', async () => {
    const client = await caller({ sub: 'decider' });
    const decided = await client.decide({ inputs: inputs({ subject: { type: 'case', id: 'named' } }) });
    expect(decided.status).toBe(201);
    const [row] = await rowsOf('decider');
    await (await caller({ sub: 'reader', role: 'auditor' })).get('/v1/decisions');
    const [reader] = await rowsOf('reader');
    const [entry] = await stage.database.query<{ credential_id: string }>(
      'SELECT credential_id FROM ledger_entry WHERE ledger_entry_id = $1',
      [decided.body.ledgerEntryId],
    );
    expect(entry?.credential_id).toBe(row?.['credentialId']);
    const found = await stage.auditor.get(`/v1/decisions?credentialId=${row?.['credentialId']}`);
    expect(found.body.items.map(({ decisionId }: { decisionId: string }) => decisionId)).toEqual([
      decided.body.decisionId,
    ]);
    const attempts = await until(
      () => stage.auditor.get(`/v1/attempts?credentialId=${row?.['credentialId']}`),
      ({ body }) => body.items?.length === 1,
    );
    expect(attempts.body.items).toEqual([
      expect.objectContaining({ credentialId: row?.['credentialId'], decisionId: decided.body.decisionId }),
    ]);
    const looked = await stage.auditor.get(`/v1/access-log?credentialId=${reader?.['credentialId']}`);
    expect(looked.body.items.map(({ route }: { route: string }) => route)).toEqual(['/v1/decisions']);
    const used = await until(
      () => rowsOf('decider'),
      ([one]) => one?.['lastUsedAt'] !== null,
    );
    expect(used[0]?.['lastUsedAt']).toEqual(expect.any(String));
  });

  test('is another one in another role', async () => {
    for (const role of ['auditor', 'admin', 'auditor'])
      await (await caller({ sub: 'promoted', role })).get('/v1/actions');
    expect((await rowsOf('promoted')).map(({ role }) => role)).toEqual(['auditor', 'admin']);
  });

  test('has no secret that anybody could send', async () => {
    await (await caller({ sub: 'secretless' })).get('/v1/actions');
    const [row] = await rowsOf('secretless');
    for (const secret of ['A'.repeat(43), Buffer.alloc(32).toString('base64url')]) {
      const reply = await new Client(stage.service.url, `dlk_${row?.['credentialId']}_${secret}`).get('/v1/actions');
      expect(reply.status).toBe(401);
    }
  });

  test.each([
    ['with a secret', `'auditor', sha256('x'), 'https://i.example', 's'`],
    ['of the operator', `'operator', decode(repeat('00', 32), 'hex'), 'https://i.example', 's'`],
    ['without a subject', `'auditor', decode(repeat('00', 32), 'hex'), 'https://i.example', NULL`],
    ['without an issuer', `'auditor', decode(repeat('00', 32), 'hex'), NULL, 's'`],
  ])('%s is refused by the database', async (_name, values) => {
    const tenant = values.startsWith(`'operator'`) ? '*' : 'acme';
    const insert = `INSERT INTO credential (tenant_id, credential_id, name, role, secret_sha256, issuer, subject) VALUES ('${tenant}', 'x', 'x', ${values})`;
    await expect(stage.database.query(insert)).rejects.toMatchObject({
      constraint: 'credential_identity_has_no_secret',
    });
  });

  test('belongs to its tenant: the same subject elsewhere is another, and sees nothing of this one', async () => {
    const here = await caller({ sub: 'of-two' });
    const there = await caller({ sub: 'of-two', tenant: 'globex', role: 'auditor' });
    const { body } = await here.decide({ inputs: inputs({ subject: { type: 'case', id: 'walled' } }) });
    expect((await here.get(`/v1/decisions/${body.decisionId}`)).status).toBe(200);
    expect((await there.get(`/v1/decisions/${body.decisionId}`)).status).toBe(404);
    const [mine, theirs] = [await rowsOf('of-two'), await rowsOf('of-two', other)];
    expect([mine.length, theirs.length]).toEqual([1, 1]);
    const revoked = await other.admin.send('DELETE', `/v1/credentials/${mine[0]?.['credentialId']}`);
    expect([revoked.status, (await here.get('/v1/actions')).status]).toEqual([404, 200]);
  });

  test('replays for a caller with a secret, and the other way round', async () => {
    const body = { inputs: inputs({ subject: { type: 'case', id: 'either' } }) };
    const client = await caller({ sub: 'either' });
    const replies: Reply[] = [
      await client.decide(body),
      await stage.orchestrator.decide(body),
      await client.decide(body),
    ];
    expect(replies.map(({ status }) => status)).toEqual([201, 201, 201]);
    expect(new Set(replies.map(({ text }) => text)).size).toBe(1);
    expect(replies.map(({ headers }) => headers.get('idempotent-replayed'))).toEqual([null, 'true', 'true']);
  });
});

describe('a revocation', () => {
  test('holds here at once and elsewhere within a second, for every role and every token of the subject', async () => {
    const elsewhere = await stage.addService();
    const jwt = await issuer.token({ claims: { sub: 'leaver' } });
    const asAuditor = await issuer.token({ claims: { sub: 'leaver', role: 'auditor' } });
    const asAdmin = await issuer.token({ claims: { sub: 'leaver', role: 'admin' } });
    for (const token of [jwt, asAuditor]) expect((await bearer(token).get('/v1/actions')).status).toBe(200);
    expect((await bearer(jwt, elsewhere.url).get('/v1/actions')).status).toBe(200);
    const [row] = await rowsOf('leaver');
    const reply = await stage.admin.send('DELETE', `/v1/credentials/${row?.['credentialId']}`);
    const revokedAt = performance.now();
    expect(reply.status).toBe(204);
    for (const token of [jwt, asAuditor, asAdmin, await issuer.token({ claims: { sub: 'leaver' } })])
      expect((await bearer(token).get('/v1/actions')).status).toBe(401);
    const there = await until(
      () => bearer(jwt, elsewhere.url).get('/v1/actions'),
      ({ status }) => status === 401,
      1_000,
    );
    expect([there.status, performance.now() - revokedAt <= 1_000]).toEqual([401, true]);
    await elsewhere.kill();
    expect(await rowsOf('leaver')).toEqual([]);
    expect((await stage.admin.send('DELETE', `/v1/credentials/${row?.['credentialId']}`)).status).toBe(404);
  });

  test('of a caller with a secret leaves identities alone', async () => {
    await (await caller({ sub: 'stays' })).get('/v1/actions');
    const { body } = await stage.admin.post('/v1/credentials', { role: 'auditor', name: 'stays' });
    expect((await stage.admin.send('DELETE', `/v1/credentials/${body.credentialId}`)).status).toBe(204);
    expect((await (await caller({ sub: 'stays' })).get('/v1/actions')).status).toBe(200);
  });
});
