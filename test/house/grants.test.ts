import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { SERVICE_ROLE } from '#database';
import { BOOKKEEPING, migratedDatabase, tablesOf } from '../support/schema.js';
import type { TestDatabase } from '../support/index.js';

/** What the role that the service runs as may do, and nothing beyond it. */
const GRANTS: Readonly<Record<string, readonly string[]>> = {
  abandoned_decision: ['INSERT', 'SELECT'],
  access: ['INSERT', 'SELECT'],
  access_end: ['INSERT', 'SELECT'],
  action_version: ['INSERT', 'SELECT'],
  attempt: ['INSERT', 'SELECT'],
  bound_key: ['INSERT', 'SELECT'],
  content_hold: ['DELETE', 'INSERT', 'SELECT'],
  credential: ['INSERT', 'SELECT', 'UPDATE (last_used_at)', 'UPDATE (revoked_at)'],
  decision_record: ['INSERT', 'SELECT'],
  dispatch: ['DELETE', 'INSERT', 'SELECT', 'UPDATE'],
  effect: ['INSERT', 'SELECT'],
  ended_lease: ['INSERT', 'SELECT'],
  hold: ['DELETE', 'INSERT', 'SELECT'],
  idempotency_record: ['DELETE', 'INSERT', 'SELECT', 'UPDATE'],
  ledger_entry: ['INSERT', 'SELECT'],
  log_key: ['INSERT', 'SELECT'],
  log_leaf: ['INSERT', 'SELECT'],
  log_tile: ['INSERT', 'SELECT', 'UPDATE (hashes)'],
  log_tree: ['INSERT', 'SELECT'].concat(
    ['checkpoint', 'root', 'signed_at', 'signed_size', 'tree_size'].map((column) => `UPDATE (${column})`),
  ),
  recorded_decision: ['INSERT', 'SELECT'],
  refund: ['INSERT', 'SELECT'],
  refund_case: ['INSERT', 'SELECT', 'UPDATE'],
  sar_filing: ['INSERT', 'SELECT'],
  schema_migration: ['SELECT'],
  tenant: ['INSERT', 'SELECT'],
  uncopied_entry: ['DELETE', 'INSERT', 'SELECT', 'UPDATE (recorded_in)'],
  unsealed_entry: ['DELETE', 'INSERT', 'SELECT'],
};

const APPEND_ONLY = [
  'abandoned_decision',
  'access',
  'access_end',
  'action_version',
  'attempt',
  'bound_key',
  'decision_record',
  'effect',
  'ended_lease',
  'ledger_entry',
  'log_key',
  'log_leaf',
  'recorded_decision',
  'tenant',
];

const INSUFFICIENT_PRIVILEGE = '42501';

let database: TestDatabase;
let service: pg.Client;

beforeAll(async () => {
  database = await migratedDatabase();
  service = new pg.Client({ connectionString: database.url, options: `-c role=${SERVICE_ROLE}` });
  await service.connect();
});

afterAll(async () => {
  await service?.end();
  await database?.drop();
});

/** The SQLSTATE that the service's role gets for a statement; null if it may. */
async function refusal(sql: string, tenant: string | null = 'acme'): Promise<string | null> {
  await service.query('BEGIN');
  try {
    if (tenant !== null) await service.query(`SELECT set_config('app.tenant', $1, true)`, [tenant]);
    await service.query(sql);
    return null;
  } catch (error) {
    return error instanceof pg.DatabaseError ? (error.code ?? '') : String(error);
  } finally {
    await service.query('ROLLBACK');
  }
}

describe('what the role of the service may do', () => {
  test('on tables: what is listed here, column by column, and nothing else', async () => {
    const rows = await database.query<{ name: string; grants: string[] }>(
      `SELECT c.relname AS name, array_agg(x.privilege_type ORDER BY x.privilege_type) AS grants
         FROM pg_class c CROSS JOIN LATERAL (
           SELECT a.privilege_type FROM aclexplode(c.relacl) a JOIN pg_roles r ON r.oid = a.grantee WHERE r.rolname = $1
           UNION ALL
           SELECT format('%s (%s)', a.privilege_type, t.attname) FROM pg_attribute t CROSS JOIN LATERAL aclexplode(t.attacl) a
             JOIN pg_roles r ON r.oid = a.grantee WHERE t.attrelid = c.oid AND r.rolname = $1) x
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') GROUP BY c.relname`,
      [SERVICE_ROLE],
    );
    expect(Object.fromEntries(rows.map(({ name, grants }) => [name, grants]))).toEqual(GRANTS);
    expect(Object.keys(GRANTS).toSorted()).toEqual([...(await tablesOf(database)), BOOKKEEPING].toSorted());
  });

  test('nothing is granted to everyone, and no grant can be passed on', async () => {
    const rows = await database.query(
      `SELECT c.relname, a.privilege_type FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.relnamespace = 'public'::regnamespace AND (a.grantee = 0 OR (a.is_grantable AND a.grantee <> c.relowner))`,
    );
    expect(rows).toEqual([]);
  });

  test('it owns nothing, makes nothing, and is no superuser', async () => {
    const [role] = await database.query(
      `SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication,
              has_schema_privilege(rolname, 'public', 'CREATE') AS creates,
              (SELECT count(*)::integer FROM pg_class WHERE relowner = r.oid) AS owned,
              (SELECT count(*)::integer FROM pg_proc WHERE proowner = r.oid) AS functions,
              (SELECT count(*)::integer FROM pg_auth_members WHERE member = r.oid) AS memberships
         FROM pg_roles r WHERE rolname = $1`,
      [SERVICE_ROLE],
    );
    expect(role).toEqual({
      rolsuper: false,
      rolbypassrls: false,
      rolcreaterole: false,
      rolcreatedb: false,
      rolreplication: false,
      creates: false,
      owned: 0,
      functions: 0,
      memberships: 0,
    });
  });

  test.each(APPEND_ONLY)('%s is append-only: the database refuses UPDATE, DELETE, TRUNCATE and DROP', async (table) => {
    const statements = [
      `UPDATE ${table} SET tenant_id = tenant_id`,
      `DELETE FROM ${table}`,
      `TRUNCATE ${table}`,
      `DROP TABLE ${table}`,
      `ALTER TABLE ${table} DISABLE ROW LEVEL SECURITY`,
    ];
    for (const sql of statements) expect([sql, await refusal(sql)]).toEqual([sql, INSUFFICIENT_PRIVILEGE]);
  });

  test('a credential can be revoked and touched, and nothing else of it changes', async () => {
    expect(await refusal('UPDATE credential SET revoked_at = now()')).toBeNull();
    for (const column of ['role', 'secret_sha256', 'expires_at', 'tenant_id', 'credential_id', 'name'])
      expect(await refusal(`UPDATE credential SET ${column} = ${column}`)).toBe(INSUFFICIENT_PRIVILEGE);
    expect(await refusal('DELETE FROM credential')).toBe(INSUFFICIENT_PRIVILEGE);
  });
});

describe('what a session of one tenant sees', () => {
  beforeAll(async () => {
    for (const tenant of ['acme', 'other', '*']) {
      if (tenant !== '*') await database.query('INSERT INTO tenant (tenant_id) VALUES ($1)', [tenant]);
      await database.query(
        `INSERT INTO credential (tenant_id, credential_id, role, name, secret_sha256) VALUES ($1, $2, $3, 'x', sha256('x'))`,
        [tenant, `of-${tenant}`, tenant === '*' ? 'operator' : 'admin'],
      );
      await database.query(`INSERT INTO action_version (tenant_id, action, version, rules) VALUES ($1, 'a', 1, '{}')`, [
        tenant,
      ]);
    }
  });

  const seen = async (settings: Readonly<Record<string, string>>, table: string): Promise<string[]> => {
    await service.query('BEGIN');
    for (const [name, value] of Object.entries(settings))
      await service.query('SELECT set_config($1, $2, true)', [name, value]);
    const { rows } = await service.query<{ tenant_id: string }>(`SELECT tenant_id FROM ${table} ORDER BY tenant_id`);
    await service.query('ROLLBACK');
    return rows.map(({ tenant_id }) => tenant_id);
  };

  test.each([
    ['without a tenant', {}, [], [], []],
    ['with an empty tenant', { 'app.tenant': '' }, [], [], []],
    ['with its tenant', { 'app.tenant': 'acme' }, ['acme'], ['acme'], ['acme']],
    ['with a tenant that is not there', { 'app.tenant': 'nobody' }, [], [], []],
    ['as the operator', { 'app.tenant': '*' }, ['acme', 'other'], ['*'], ['*']],
    ['with a credential and no tenant', { 'app.credential': 'of-other' }, [], ['other'], []],
    ['with an empty credential', { 'app.credential': '' }, [], [], []],
  ])('%s', async (_name, settings, tenants, credentials, actions) => {
    expect(await seen(settings, 'tenant')).toEqual(tenants);
    expect(await seen(settings, 'credential')).toEqual(credentials);
    expect(await seen(settings, 'action_version')).toEqual(actions);
  });

  test('the look at a credential leaves nothing behind in the session', async () => {
    const { rows } = await service.query(`SELECT tenant_id FROM find_credential('of-other')`);
    const { rows: after } = await service.query(
      `SELECT current_setting('app.credential', true) AS credential, count(*)::integer AS seen FROM credential GROUP BY 1`,
    );

    expect(rows).toEqual([{ tenant_id: 'other' }]);
    expect(after).toEqual([]);
  });

  test.each([
    `INSERT INTO action_version (tenant_id, action, version, rules) VALUES ('other', 'b', 1, '{}')`,
    `INSERT INTO credential (tenant_id, credential_id, role, name, secret_sha256) VALUES ('other', 'mine', 'admin', 'x', sha256('x'))`,
    `INSERT INTO credential (tenant_id, credential_id, role, name, secret_sha256) VALUES ('*', 'mine', 'operator', 'x', sha256('x'))`,
    `INSERT INTO tenant (tenant_id) VALUES ('mine')`,
    `INSERT INTO bound_key (tenant_id, idem_key, key_source, fingerprint, decision_id, bound_at) VALUES ('other', 'k', 'client', sha256('x'), gen_random_uuid(), now())`,
  ])('it cannot write into another: %s', async (sql) => {
    expect(await refusal(sql)).toBe(INSUFFICIENT_PRIVILEGE);
  });

  test('it cannot revoke a credential of another tenant or of the operator', async () => {
    await service.query('BEGIN');
    await service.query(`SELECT set_config('app.tenant', 'acme', true)`);
    const { rowCount } = await service.query(
      `UPDATE credential SET revoked_at = now() WHERE credential_id IN ('of-other', 'of-*')`,
    );
    await service.query('ROLLBACK');

    expect(rowCount).toBe(0);
  });

  test('a credential that the session names is read and never written by that alone', async () => {
    await service.query('BEGIN');
    await service.query(
      `SELECT set_config('app.tenant', 'acme', true), set_config('app.credential', 'of-other', true)`,
    );
    const update = service.query(`UPDATE credential SET revoked_at = now() WHERE credential_id = 'of-other'`).then(
      ({ rowCount }) => rowCount,
      (error: unknown) => (error instanceof pg.DatabaseError ? error.code : String(error)),
    );
    const outcome = await update;
    await service.query('ROLLBACK');

    expect([0, INSUFFICIENT_PRIVILEGE]).toContain(outcome);
  });
});
