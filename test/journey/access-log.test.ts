import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { AccessView } from '#ledger';
import { SERVICE_ROLE } from '#database';
import { Client, inputs, type Reply } from '../support/index.js';
import { walked } from '../support/reading.js';
import { setStage, TRANSACTIONAL, type Stage } from '../support/stage.js';

let stage: Stage;
let made: Reply;
beforeAll(async () => {
  stage = await setStage({ actions: { 'note.add': TRANSACTIONAL } });
  made = await stage.orchestrator.decide({ inputs: inputs() }, '"of a key/1"');
  await stage.orchestrator.decide({ inputs: inputs({ policyVersion: 'other' }) });
});
afterAll(() => stage?.clear());

const NOBODY = '0199f1f5-0000-7000-8000-000000000000';
const idOf = ({ token }: Client): string => token?.split('_')[1] ?? '';

/** All of the log, seen behind the API, so that to look does not add to it. */
async function log(): Promise<Record<string, unknown>[]> {
  return stage.database.query(
    `SELECT a.tenant_id, a.credential_id, a.request_id, a.method, a.route, a.filters, e.rows::integer AS rows, e.finished
       FROM access a LEFT JOIN access_end e USING (tenant_id, access_id) ORDER BY a.at, a.access_id`,
  );
}

let requests = 0;
/** What one request adds to the log. */
async function addedBy(
  client: Client,
  path: string,
  method = 'GET',
): Promise<{ reply: Reply; requestId: string; added: Record<string, unknown>[] }> {
  const before = (await log()).length;
  const requestId = `request-${(requests += 1)}`;
  const reply = await client.send(method, path, { headers: { 'x-request-id': requestId } });
  return { reply, requestId, added: (await log()).slice(before) };
}

/** Every route of a reading: how it is asked, what the log says of it, and how many rows it gives. */
const READINGS: readonly (readonly [
  route: string,
  path: () => string,
  filters: () => Record<string, string>,
  rows: number,
])[] = [
  [
    '/v1/decisions/{decisionId}',
    () => `/v1/decisions/${made.body.decisionId}`,
    () => ({ decisionId: made.body.decisionId }),
    1,
  ],
  ['/v1/decisions', () => '/v1/decisions?action=note.add&limit=1', () => ({ action: 'note.add', limit: '1' }), 1],
  ['/v1/decisions', () => '/v1/decisions?subjectId=%22%5C%27', () => ({ subjectId: `"\\'` }), 0],
  ['/v1/decisions/count', () => '/v1/decisions/count', () => ({}), 1],
  ['/v1/decisions/count', () => '/v1/decisions/count?groupBy=policyVersion', () => ({ groupBy: 'policyVersion' }), 2],
  ['/v1/idempotency-records/{key}', () => '/v1/idempotency-records/of%20a%20key%2F1', () => ({ key: 'of a key/1' }), 1],
  ['/v1/attempts', () => '/v1/attempts?disposition=created', () => ({ disposition: 'created' }), 2],
  ['/v1/attempts/count', () => '/v1/attempts/count?groupBy=disposition', () => ({ groupBy: 'disposition' }), 1],
  ['/v1/ledger/entries', () => '/v1/ledger/entries?order=desc', () => ({ order: 'desc' }), 2],
  [
    '/v1/ledger/entries/{ledgerEntryId}',
    () => `/v1/ledger/entries/${made.body.ledgerEntryId}`,
    () => ({ ledgerEntryId: made.body.ledgerEntryId }),
    1,
  ],
  [
    '/v1/exports/decisions',
    () => '/v1/exports/decisions?format=csv&key=of+a+key/1',
    () => ({ format: 'csv', key: 'of a key/1' }),
    1,
  ],
  ['/v1/exports/decisions', () => '/v1/exports/decisions?reason=none', () => ({ reason: 'none' }), 0],
  ['/v1/actions/{action}/versions', () => '/v1/actions/note.add/versions', () => ({ action: 'note.add' }), 1],
  ['/v1/access-log', () => '/v1/access-log?route=/v1/nothing', () => ({ route: '/v1/nothing' }), 0],
];

test.each(READINGS)('a reading of %s makes one row: who, what and how much', async (route, path, filters, rows) => {
  for (const client of [stage.auditor, stage.admin]) {
    const { reply, requestId, added } = await addedBy(client, path());
    expect([reply.status, reply.text]).toEqual([200, expect.any(String)]);
    expect(added).toEqual([
      {
        tenant_id: 'acme',
        credential_id: idOf(client),
        request_id: requestId,
        method: 'GET',
        route,
        filters: expect.any(String),
        rows,
        finished: true,
      },
    ]);
    expect(JSON.parse(String(added[0]?.['filters']))).toEqual(filters());
  }
});

test.each([
  `/v1/decisions/${NOBODY}`,
  '/v1/decisions/none',
  '/v1/decisions/%00%01%F0%9F%98%80',
  `/v1/decisions/${'%01'.repeat(760)}`,
  '/v1/idempotency-records/nobody',
  `/v1/ledger/entries/${NOBODY}`,
  '/v1/actions/no.such/versions',
])('to learn that something is not there is a reading as well: %s', async (path) => {
  const { reply, added } = await addedBy(stage.auditor, path);
  expect(reply.status).toBe(404);
  expect(added).toEqual([expect.objectContaining({ credential_id: idOf(stage.auditor), rows: 0, finished: true })]);
  expect((await stage.auditor.get('/v1/access-log?limit=500')).status).toBe(200);
});

test('whoever is not answered leaves no row: 400, 401, 403', async () => {
  for (const [, path] of READINGS) {
    const bare = path().split('?')[0] ?? '';
    expect((await addedBy(stage.auditor, `${bare}?nonsense=1`)).added).toEqual([]);
    expect((await addedBy(new Client(stage.service.url), bare)).added).toEqual([]);
    expect((await addedBy(new Client(stage.service.url, `${stage.tokens.auditor}x`), bare)).added).toEqual([]);
    const { reply, added } = await addedBy(stage.orchestrator, bare);
    expect([bare, added.length]).toEqual([bare, reply.status === 403 ? 0 : 1]);
  }
});

test('what is no reading of records leaves no row', async () => {
  for (const path of ['/v1/actions', '/v1/actions/note.add', '/v1/credentials', '/healthz', '/readyz', '/openapi.json'])
    expect([path, (await addedBy(stage.admin, path)).added]).toEqual([path, []]);
  const before = (await log()).length;
  await stage.orchestrator.decide({ inputs: inputs() }, '"of a key/1"');
  expect(await log()).toHaveLength(before);
});

test.each(READINGS)('HEAD of %s tells nothing that is not recorded', async (_route, path) => {
  const { reply, added } = await addedBy(stage.auditor, path(), 'HEAD');
  expect([405, 404].includes(reply.status) ? [] : added).toHaveLength(reply.status < 300 ? 1 : 0);
});

describe('the log is asked', () => {
  const asked = async (query: Record<string, string>): Promise<AccessView[]> => {
    const { status, body } = await stage.auditor.get(
      `/v1/access-log?${new URLSearchParams({ limit: '500', ...query })}`,
    );
    expect(status).toBe(200);
    return body.items;
  };

  test('by credential, route and time, and each filter narrows it', async () => {
    const all = await asked({});
    expect(Object.keys(all[0] ?? {}).toSorted()).toEqual(
      ['accessId', 'at', 'credentialId', 'requestId', 'method', 'route', 'filters', 'rows', 'finished'].toSorted(),
    );
    const ofAdmin = await asked({ credentialId: idOf(stage.admin) });
    expect(ofAdmin).toEqual(all.filter(({ credentialId }) => credentialId === idOf(stage.admin)));
    expect(ofAdmin.length).toBeGreaterThan(5);
    const counts = await asked({ route: '/v1/decisions/count' });
    expect(counts).toEqual(all.filter(({ route }) => route === '/v1/decisions/count'));
    const [from, to] = [all[3]?.at ?? '', all[9]?.at ?? ''];
    expect(await asked({ from, to })).toEqual(all.slice(3, 9));
    expect(await asked({ from, to, credentialId: idOf(stage.admin), route: '/v1/decisions/count' })).toEqual(
      all
        .slice(3, 9)
        .filter(({ credentialId, route }) => credentialId === idOf(stage.admin) && route === '/v1/decisions/count'),
    );
    expect(await asked({ from: to, to: from })).toEqual([]);
  });

  test.each(['asc', 'desc'])(
    'in pages (%s): each row that was there at the start once, though every page adds one',
    async (order) => {
      const there = (await log()).length;
      const rows = await walked<AccessView>(stage.auditor, '/v1/access-log', { order }, (page) => 3 + page);
      expect(new Set(rows.map(({ accessId }) => accessId)).size).toBe(rows.length);
      expect(rows).toHaveLength(there);
      const places = rows.map(({ at, accessId }) => at + accessId);
      expect(places).toEqual(order === 'asc' ? places.toSorted() : places.toSorted().toReversed());
    },
  );

  test('by auditor and admin; an orchestrator may not, and another tenant sees its own', async () => {
    expect((await stage.admin.get('/v1/access-log')).status).toBe(200);
    const refused = await stage.orchestrator.get('/v1/access-log');
    expect([refused.status, refused.body.code]).toEqual([403, 'forbidden']);
    const globex = await stage.addTenant('globex');
    expect((await globex.auditor.get('/v1/access-log')).body.items).toEqual([]);
    const own = (await globex.auditor.get('/v1/access-log')).body.items;
    expect(own.map(({ credentialId }: AccessView) => credentialId)).toEqual([idOf(globex.auditor)]);
  });
});

test.each(['INSERT ON access', 'INSERT ON access_end'])(
  'what cannot be recorded is not answered: without %s',
  async (right) => {
    await stage.database.query(`REVOKE ${right} FROM ${SERVICE_ROLE}`);
    try {
      for (const [, path] of READINGS) {
        // An export adds its end behind its last byte: then it is its beginning that must be on record.
        if (right.endsWith('access_end') && path().includes('/exports/')) continue;
        const reply = await stage.auditor.get(path());
        expect([path(), reply.status, reply.body.code]).toEqual([path(), 500, 'internal']);
        expect(reply.text).not.toMatch(/pol-7|note\.add|created|asc/);
      }
      const missing = await stage.auditor.get(`/v1/decisions/${NOBODY}`);
      expect(missing.status).toBe(500);
    } finally {
      await stage.database.query(`GRANT ${right} TO ${SERVICE_ROLE}`);
    }
    expect((await stage.auditor.get('/v1/decisions')).status).toBe(200);
  },
);
