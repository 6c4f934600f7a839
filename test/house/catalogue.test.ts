import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { BOOKKEEPING, migratedDatabase, migrationFiles, tablesOf } from '../support/schema.js';
import type { TestDatabase } from '../support/index.js';

let database: TestDatabase;
let tables: string[];

beforeAll(async () => {
  database = await migratedDatabase();
  tables = await tablesOf(database);
});

afterAll(async () => {
  await database?.drop();
});

const names = async (sql: string, parameters: readonly unknown[] = []): Promise<string[]> =>
  (await database.query<{ name: string }>(sql, parameters)).map(({ name }) => name);

describe('the tenant is part of everything that identifies a row', () => {
  test('every table has a tenant_id that is never NULL', async () => {
    const having = await names(
      `SELECT c.relname AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relname = ANY ($1) AND a.attname = 'tenant_id' AND a.attnotnull ORDER BY 1`,
      [tables],
    );
    expect(having).toEqual(tables);
  });

  test('every table has a primary key', async () => {
    const having = await names(
      `SELECT conrelid::regclass::text AS name FROM pg_constraint WHERE contype = 'p' AND conrelid::regclass::text = ANY ($1) ORDER BY 1`,
      [tables],
    );
    expect(having).toEqual(tables);
  });

  test('every primary key, unique constraint and unique index holds it', async () => {
    const lacking = await names(
      `SELECT i.indexrelid::regclass::text AS name FROM pg_index i
        WHERE i.indrelid::regclass::text = ANY ($1) AND i.indisunique
          AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = i.indrelid AND a.attname = 'tenant_id' AND a.attnum = ANY (i.indkey))`,
      [tables],
    );
    expect(lacking).toEqual([]);
  });

  test('every foreign key holds it on both sides, in the same position', async () => {
    const lacking = await names(
      `SELECT c.conname AS name FROM pg_constraint c
        WHERE c.contype = 'f' AND c.conrelid::regclass::text = ANY ($1)
          AND NOT EXISTS (
            SELECT FROM unnest(c.conkey, c.confkey) AS pair(mine, theirs)
              JOIN pg_attribute m ON m.attrelid = c.conrelid AND m.attnum = pair.mine AND m.attname = 'tenant_id'
              JOIN pg_attribute t ON t.attrelid = c.confrelid AND t.attnum = pair.theirs AND t.attname = 'tenant_id')`,
      [tables],
    );
    expect(lacking).toEqual([]);
  });

  test('it is in every index', async () => {
    const without = await names(
      `SELECT i.indexrelid::regclass::text AS name FROM pg_index i
        WHERE i.indrelid::regclass::text = ANY ($1)
          AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) AND a.attname = 'tenant_id')`,
      [tables],
    );
    expect(without).toEqual([]);
  });
});

describe('row-level security is the second wall', () => {
  test('it is enabled and forced on every table', async () => {
    const walled = await names(
      `SELECT relname AS name FROM pg_class WHERE relname = ANY ($1) AND relrowsecurity AND relforcerowsecurity ORDER BY 1`,
      [tables],
    );
    expect(walled).toEqual(tables);
  });

  test('every table has one policy, for all commands and everyone, that asks for the tenant on reading and on writing', async () => {
    const policies = await database.query<{
      name: string;
      using: string;
      check: string;
      command: string;
      roles: string;
      permissive: boolean;
    }>(
      `SELECT polrelid::regclass::text AS name, pg_get_expr(polqual, polrelid) AS using, pg_get_expr(polwithcheck, polrelid) AS check,
              polcmd::text AS command, polroles::text AS roles, polpermissive AS permissive FROM pg_policy ORDER BY 1`,
    );
    expect(policies.map(({ name }) => name)).toEqual(tables);
    for (const { name, using, check, command, roles } of policies) {
      expect([name, command, roles]).toEqual([name, '*', '{0}']);
      expect(using).toContain('current_tenant()');
      expect(check).toContain('current_tenant()');
    }
  });

  test('only the lists of tenants and of credentials ask for anything else', async () => {
    const others = await database.query<{ name: string; using: string; check: string }>(
      `SELECT polrelid::regclass::text AS name, pg_get_expr(polqual, polrelid) AS using, pg_get_expr(polwithcheck, polrelid) AS check FROM pg_policy
        WHERE pg_get_expr(polqual, polrelid) <> '(tenant_id = current_tenant())' OR pg_get_expr(polwithcheck, polrelid) <> '(tenant_id = current_tenant())' ORDER BY 1`,
    );
    expect(others).toEqual([
      {
        name: 'credential',
        using: `((tenant_id = current_tenant()) OR (credential_id = NULLIF(current_setting('app.credential'::text, true), ''::text)))`,
        check: '(tenant_id = current_tenant())',
      },
      {
        name: 'tenant',
        using: `((tenant_id = current_tenant()) OR (current_tenant() = '*'::text))`,
        check: `(current_tenant() = '*'::text)`,
      },
    ]);
  });

  test('nothing goes round it: no view and no function that runs as its owner, no rule', async () => {
    const ways = await names(
      `SELECT proname AS name FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosecdef
        UNION ALL SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('v', 'm', 'f')
                     AND NOT (relkind = 'v' AND coalesce('security_invoker=true' = ANY (reloptions), false))
        UNION ALL SELECT rulename FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
                   WHERE c.relnamespace = 'public'::regnamespace AND rulename <> '_RETURN'`,
    );
    expect(ways).toEqual([]);
  });
});

describe('names are given by hand', () => {
  const written = migrationFiles()
    .map(({ sql }) => sql)
    .join('\n');

  test('every constraint is named in a migration, by its table and what it says', async () => {
    const constraints = await database.query<{ name: string; table: string }>(
      // NOT NULL is a constraint with a name of the server's since PostgreSQL 18.
      `SELECT conname AS name, conrelid::regclass::text AS table FROM pg_constraint
        WHERE connamespace = 'public'::regnamespace AND conrelid <> 0 AND contype <> 'n' AND conrelid::regclass::text <> $1 ORDER BY 1`,
      [BOOKKEEPING],
    );
    expect(constraints.length).toBeGreaterThan(30);
    expect(constraints.filter(({ name }) => !new RegExp(`\\bCONSTRAINT ${name}\\b`).test(written))).toEqual([]);
    expect(constraints.filter(({ name, table }) => !new RegExp(`^${table}_[a-z][a-z0-9_]*$`).test(name))).toEqual([]);
    expect(
      constraints.filter(({ name }) => /_(check|fkey|excl)\d*$|_key\d+$|\d$/.test(name) && !name.endsWith('sha256')),
    ).toEqual([]);
  });

  test('every index is named in a migration', async () => {
    const indexes = await names(
      `SELECT indexrelid::regclass::text AS name FROM pg_index WHERE indrelid::regclass::text = ANY ($1)`,
      [tables],
    );
    expect(indexes.filter((name) => !new RegExp(`(CONSTRAINT|INDEX) ${name}\\b`).test(written))).toEqual([]);
  });
});

/** Texts whose length no CHECK bounds, and why none is needed. */
const UNBOUNDED: Readonly<Record<string, string>> = {
  tenant_id: 'the policy lets in the session’s tenant alone, and that is a slug',
  'attempt.credential_id': 'minted here: 20 hex digits',
  'action_version.credential_id': 'minted here: 20 hex digits',
  'decision_record.credential_id': 'minted here: 20 hex digits',
  'ledger_entry.credential_id': 'minted here: 20 hex digits',
  'attempt.evidence': 'six members, each bounded when the request is checked',
  'decision_record.inputs': 'the body that it came in has at most 256 KiB',
  'idempotency_record.response_body': 'written by this service from parts that are bounded',
  'ledger_entry.refusal': 'written by this service from parts that are bounded',
};

test('every text is bounded by a CHECK, or listed with the reason why not', async () => {
  const unbounded = await names(
    `SELECT c.relname || '.' || a.attname AS name
       FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      WHERE c.relname = ANY ($1) AND a.atttypid IN ('text'::regtype, 'varchar'::regtype, 'jsonb'::regtype, 'json'::regtype)
        AND NOT EXISTS (
          SELECT FROM pg_constraint k
           WHERE k.conrelid = c.oid AND k.contype = 'c' AND a.attnum = ANY (k.conkey)
             AND pg_get_constraintdef(k.oid) ~ format('(char_length|octet_length|pg_column_size)\\(\\(?%s\\)?|\\m%s ~ |\\m%s = ANY', a.attname, a.attname, a.attname))
      ORDER BY 1`,
    [tables],
  );
  expect(unbounded.filter((name) => !(name in UNBOUNDED) && !name.endsWith('.tenant_id'))).toEqual([]);
});

test('every text that identifies something is compared in the C collation', async () => {
  const others = await names(
    `SELECT DISTINCT c.relname || '.' || a.attname AS name
       FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
       JOIN pg_collation l ON l.oid = a.attcollation
      WHERE c.relname = ANY ($1) AND l.collname <> 'C'`,
    [tables],
  );
  expect(others).toEqual([]);
});
