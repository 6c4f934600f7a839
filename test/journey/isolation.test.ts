import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { inputs, type Reply } from '../support/index.js';
import { setStage, TRANSACTIONAL, type Cast, type Stage } from '../support/stage.js';

const ACTIONS = {
  'note.add': TRANSACTIONAL,
  'case.close': { ...TRANSACTIONAL, uniqueness: 'subject' },
  'refund.create': TRANSACTIONAL,
  'sar.file': { ...TRANSACTIONAL, uniqueness: 'subject-and-period' },
};
/** Tables whose rows belong to a tenant; more may come, and are then looked at as well. */
const TENANT_TABLES = ['tenant', 'credential', 'action_version', 'idempotency_record', 'bound_key']
  .concat(['decision_record', 'attempt', 'effect', 'ledger_entry', 'refund_case', 'refund', 'sar_filing'])
  .toSorted();
const SERVICE_ROLE = 'decision_ledger_service';

let stage: Stage;
let globex: Cast;
let first: Reply;
beforeAll(async () => {
  stage = await setStage({ actions: ACTIONS });
  globex = await stage.addTenant('globex');
  for (const [action, rules] of Object.entries(ACTIONS)) await globex.admin.put(`/v1/actions/${action}`, rules);
  for (const { orchestrator } of [stage, globex]) await fillEveryTable(orchestrator);
  first = await stage.orchestrator.decide({ inputs: inputs() }, 'leaked-key');
});
afterAll(() => stage?.clear());

async function fillEveryTable(orchestrator: Cast['orchestrator']): Promise<void> {
  const filed = inputs({ action: 'sar.file', params: { reportingPeriod: '2026' } });
  for (const asked of [inputs(), inputs({ action: 'refund.create' }), inputs({ action: 'case.close' }), filed])
    await orchestrator.decide({ inputs: asked });
  await orchestrator.decide({ inputs: inputs({ action: 'case.close', policyVersion: 'pol-8' }) });
  await orchestrator.decide({ inputs: inputs() }, 'bound');
}

/** Works as the service does: in its role, in a transaction that is never committed, with or without a tenant. */
async function asService<T>(tenant: string | null, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: stage.database.url });
  await client.connect();
  try {
    await client.query('BEGIN');
    await client.query(`SET LOCAL ROLE ${SERVICE_ROLE}`);
    if (tenant !== null) await client.query(`SELECT set_config('app.tenant', $1, true)`, [tenant]);
    return await work(client);
  } finally {
    await client.end();
  }
}

describe('over HTTP', () => {
  test('one key in two tenants stands for two decisions', async () => {
    const asked = { inputs: inputs({ subject: { type: 'case', id: 'i-1' } }) };
    const [mine, yours] = [
      await stage.orchestrator.decide(asked, 'shared'),
      await globex.orchestrator.decide({ inputs: inputs({ subject: { type: 'case', id: 'i-2' } }) }, 'shared'),
    ];
    expect([mine.status, yours.status, yours.headers.get('idempotent-replayed')]).toEqual([201, 201, null]);
    expect(mine.body.decisionId).not.toBe(yours.body.decisionId);
    expect((await stage.orchestrator.decide(asked, 'shared')).text).toBe(mine.text);
  });

  test('one content in two tenants has two content keys, and each tenant’s own is refused to the other', async () => {
    const asked = { inputs: inputs({ subject: { type: 'case', id: 'i-3' } }) };
    const [mine, yours] = [await stage.orchestrator.decide(asked), await globex.orchestrator.decide(asked)];
    expect([mine.status, yours.status]).toEqual([201, 201]);
    expect(yours.body.key).toMatch(/^dk_globex_/);
    const foreign = await globex.orchestrator.decide(asked, mine.body.contentKey);
    expect([foreign.status, foreign.body.code]).toEqual([422, 'key-derivation-mismatch']);
  });

  test('a leaked key of another tenant reveals nothing: it is free', async () => {
    const reply = await globex.orchestrator.decide({ inputs: inputs({ params: { other: 1 } }) }, 'leaked-key');
    expect([reply.status, reply.headers.get('idempotent-replayed')]).toEqual([201, null]);
  });

  test.each([
    ['decision', () => `/v1/decisions/${first.body.decisionId}`, '/v1/decisions/0199f1f5-0000-7000-8000-000000000000'],
    ['content key', () => `/v1/idempotency-records/${first.body.contentKey}`, '/v1/idempotency-records/no-such-key'],
    ['client key', () => '/v1/idempotency-records/bound-here', '/v1/idempotency-records/no-such-key'],
    ['action', () => '/v1/actions/only.here', '/v1/actions/no.such'],
  ])('a %s of another tenant is 404, indistinguishable from one that does not exist', async (_name, path, missing) => {
    await stage.orchestrator.decide({ inputs: inputs() }, 'bound-here');
    await stage.admin.put('/v1/actions/only.here', TRANSACTIONAL);
    expect((await stage.auditor.get(path())).status).toBe(200);
    for (const reader of [globex.admin, globex.orchestrator, globex.auditor]) {
      const headers = { 'x-request-id': 'same' };
      const [foreign, none] = [await reader.get(path(), headers), await reader.get(missing, headers)];
      expect([foreign.status, foreign.text]).toEqual([404, none.text]);
    }
  });

  test('a credential of another tenant cannot be revoked, and goes on working', async () => {
    const [, id] = stage.tokens.auditor.split('_');
    const foreign = await globex.admin.send('DELETE', `/v1/credentials/${id}`);
    expect([foreign.status, foreign.body.code]).toEqual([404, 'not-found']);
    expect((await stage.auditor.get('/v1/actions')).status).toBe(200);
    const { items } = (await globex.admin.get('/v1/credentials')).body;
    expect(items.map((one: { credentialId: string }) => one.credentialId)).not.toContain(id);
  });

  test('a cursor of another tenant is 400', async () => {
    const page = await stage.auditor.get('/v1/decisions?limit=1');
    const foreign = await globex.auditor.get(`/v1/decisions?limit=1&cursor=${page.body.nextCursor}`);
    expect([foreign.status, foreign.body.code, foreign.body.errors[0].pointer]).toEqual([
      400,
      'validation-failed',
      'cursor',
    ]);
  });

  test('a list shows the tenant’s own decisions, whatever is asked for', async () => {
    const own = await stage.auditor.get('/v1/decisions?limit=500');
    const foreign = await globex.auditor.get('/v1/decisions?limit=500');
    for (const row of own.body.items) expect(row.contentKey).toMatch(/^dk_acme_/);
    for (const row of foreign.body.items) expect(row.contentKey).toMatch(/^dk_globex_/);
    for (const query of [
      `decisionId=${first.body.decisionId}`,
      `contentKey=${first.body.contentKey}`,
      'key=bound-here',
    ])
      expect((await globex.auditor.get(`/v1/decisions?${query}`)).body.items).toEqual([]);
  });

  test('inputs that name another tenant are refused', async () => {
    const reply = await globex.orchestrator.decide({ inputs: inputs({ tenantId: 'acme' }) });
    expect([reply.status, reply.body.code]).toEqual([403, 'tenant-mismatch']);
  });
});

describe('behind the WHERE clause', () => {
  test('every table with a tenant is known to these tests', async () => {
    const rows = await stage.database.query<{ name: string }>(
      `SELECT c.relname AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
        WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace ORDER BY c.relname COLLATE "C"`,
    );
    expect(rows.map(({ name }) => name)).toEqual(expect.arrayContaining(TENANT_TABLES));
  });

  test('every other table holds nothing of a tenant: only the list of migrations', async () => {
    const rows = await stage.database.query<{ name: string }>(
      `SELECT c.relname AS name FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
          AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id')`,
    );
    expect(rows.map(({ name }) => name)).toEqual(['schema_migration']);
  });

  test('every key and every reference begins with the tenant, or holds it', async () => {
    const rows = await stage.database.query<{ name: string }>(
      `SELECT conname AS name FROM pg_constraint k JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attname = 'tenant_id'
        WHERE k.contype IN ('p', 'u', 'f') AND k.connamespace = 'public'::regnamespace AND NOT a.attnum = ANY (k.conkey)`,
    );
    expect(rows).toEqual([]);
  });

  describe.each(TENANT_TABLES)('%s', (table) => {
    const tenantsSeen = (tenant: string | null): Promise<string[]> =>
      asService(tenant, async (client) => {
        const { rows } = await client.query<{ tenant_id: string }>(`SELECT DISTINCT tenant_id FROM ${table}`);
        return rows.map(({ tenant_id }) => tenant_id).toSorted();
      });

    test('holds rows of both tenants, and shows none without a tenant', async () => {
      const rows = await stage.database.query<{ tenant_id: string }>(
        `SELECT DISTINCT tenant_id FROM ${table} WHERE tenant_id <> '*' ORDER BY tenant_id`,
      );
      expect(rows.map(({ tenant_id }) => tenant_id)).toEqual(['acme', 'globex']);
      expect(await tenantsSeen(null)).toEqual([]);
      expect(await tenantsSeen('')).toEqual([]);
    });

    test('shows a tenant its own rows and no other’s, without any WHERE', async () => {
      expect(await tenantsSeen('acme')).toEqual(['acme']);
      expect(await tenantsSeen('globex')).toEqual(['globex']);
      expect(await tenantsSeen('nobody')).toEqual([]);
    });

    test('its policy binds the owner too', async () => {
      const [row] = await stage.database.query<{ forced: boolean }>(
        'SELECT relrowsecurity AND relforcerowsecurity AS forced FROM pg_class WHERE oid = $1::regclass',
        [table],
      );
      expect(row?.forced).toBe(true);
    });
  });

  test('a row cannot be written into another tenant', async () => {
    const writing = asService('acme', (client) =>
      client.query(
        `INSERT INTO bound_key (tenant_id, idem_key, key_source, fingerprint, decision_id, bound_at)
         VALUES ('globex', 'smuggled', 'client', sha256(''), gen_random_uuid(), now())`,
      ),
    );
    await expect(writing).rejects.toMatchObject({ code: '42501' });
  });
});

describe('append-only for the service', () => {
  const INSUFFICIENT_PRIVILEGE = '42501';
  const TABLE = ['ledger_entry', 'decision_record', 'attempt'].flatMap((table) =>
    [
      `UPDATE ${table} SET tenant_id = tenant_id`,
      `DELETE FROM ${table}`,
      `TRUNCATE ${table}`,
      `TRUNCATE ${table} CASCADE`,
      `ALTER TABLE ${table} DISABLE ROW LEVEL SECURITY`,
      `DROP TABLE ${table}`,
    ].map((sql) => [sql] as const),
  );
  test.each(TABLE)('%s is refused', async (sql) => {
    await expect(asService('acme', (client) => client.query(sql))).rejects.toMatchObject({
      code: INSUFFICIENT_PRIVILEGE,
    });
  });

  test('no column of them may be updated', async () => {
    const rows = await stage.database.query<{ name: string }>(
      `SELECT c.relname || '.' || a.attname AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
        WHERE c.relname IN ('ledger_entry', 'decision_record', 'attempt') AND has_column_privilege($1, c.oid, a.attnum, 'UPDATE')`,
      [SERVICE_ROLE],
    );
    expect(rows).toEqual([]);
  });

  test('the service’s role is nobody who could step around it', async () => {
    const [role] = await stage.database.query(
      'SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb FROM pg_roles WHERE rolname = $1',
      [SERVICE_ROLE],
    );
    expect(role).toEqual({ rolsuper: false, rolbypassrls: false, rolcreaterole: false, rolcreatedb: false });
    const owned = await stage.database.count(
      `SELECT count(*) FROM pg_class WHERE relowner = $1::regrole AND relnamespace = 'public'::regnamespace`,
      [SERVICE_ROLE],
    );
    expect(owned).toBe(0);
  });
});
