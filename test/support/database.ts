import { randomBytes } from 'node:crypto';
import pg from 'pg';

/** A database of its own for a test, on the server that the test run was given. */
export interface TestDatabase {
  /** A superuser's URL: tests look behind row-level security with it. */
  readonly url: string;
  /** Rows of a statement, seen by a superuser. */
  query<Row extends pg.QueryResultRow>(sql: string, parameters?: readonly unknown[]): Promise<Row[]>;
  /** The single number that a statement gives. */
  count(sql: string, parameters?: readonly unknown[]): Promise<number>;
  /** A copy as it is now, to be restored from: whoever is connected is thrown out. */
  backUp(): Promise<Backup>;
  /** Another database that is as this one is now: whoever is connected is thrown out. */
  copy(): Promise<TestDatabase>;
  drop(): Promise<void>;
}

export interface Backup {
  /** Puts the database back to what it was. The backup stays. */
  restore(): Promise<void>;
  drop(): Promise<void>;
}

function serverUrl(): string {
  const url = process.env['TEST_DATABASE_URL'];
  if (url === undefined || url === '')
    throw new Error('TEST_DATABASE_URL is not set: run the tests by "npm test", which starts a server');
  return url;
}

/** A superuser's URL of a database on the server of the test run. */
export function urlOf(database: string): string {
  const url = new URL(serverUrl());
  url.pathname = database;
  return url.href;
}

/** An empty database, or a copy of another. */
export async function freshDatabase(template = 'template1'): Promise<TestDatabase> {
  const name = `t_${randomBytes(8).toString('hex')}`;
  await onServer((client) => client.query(`CREATE DATABASE ${name} TEMPLATE ${template}`));
  const url = urlOf(name);
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  // A crash test takes the server away while connections are idle.
  pool.on('error', () => undefined);
  return {
    url,
    async query<Row extends pg.QueryResultRow>(sql: string, parameters: readonly unknown[] = []): Promise<Row[]> {
      return (await pool.query<Row>(sql, [...parameters])).rows;
    },
    async count(sql, parameters = []) {
      const { rows } = await pool.query<{ n: string }>(`SELECT n::text FROM (${sql}) AS counted(n)`, [...parameters]);
      return Number(rows[0]?.n);
    },
    async backUp() {
      const backup = `${name}_b${randomBytes(4).toString('hex')}`;
      await copyDatabase(name, backup);
      return {
        async restore() {
          await onServer((client) => client.query(`DROP DATABASE ${name} WITH (FORCE)`));
          await copyDatabase(backup, name);
        },
        async drop() {
          await onServer((client) => client.query(`DROP DATABASE ${backup} WITH (FORCE)`));
        },
      };
    },
    async copy() {
      await onServer((client) => disconnect(client, name));
      return freshDatabase(name);
    },
    async drop() {
      await pool.end();
      await onServer((client) => client.query(`DROP DATABASE ${name} WITH (FORCE)`));
    },
  };
}

/** A database that somebody is connected to cannot be copied. */
async function disconnect(client: pg.Client, database: string): Promise<void> {
  await client.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [database]);
}

async function copyDatabase(from: string, to: string): Promise<void> {
  await onServer(async (client) => {
    await disconnect(client, from);
    await client.query(`CREATE DATABASE ${to} TEMPLATE ${from}`);
  });
}

export async function onServer<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: serverUrl() });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
