import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';
import { PROJECT_ROOT } from './project-root.js';

/** Where plain SQL files are taken from: the product's, and those of the examples for as long as somebody keeps them. */
const FOLDERS = ['migrations', 'examples/migrations'];

/** Two processes that migrate at once take turns. Any number will do, as long as everyone uses the same. */
const MIGRATION_LOCK = 7_233_190_401;

export const MIGRATION_TABLE = 'schema_migration';

interface SqlFile {
  /** TypeORM's form: a name that ends in the 13 digits of a time. */
  readonly name: string;
  readonly path: string;
}

function sqlFiles(): readonly SqlFile[] {
  const paths = FOLDERS.map((folder) => join(PROJECT_ROOT, folder))
    .filter(existsSync)
    .flatMap((folder) => readdirSync(folder).map((file) => join(folder, file)))
    .filter((path) => path.endsWith('.sql'));
  const files = paths.map((path) => {
    const [, time, idea] = /^(\d{13})-([a-z0-9-]+)\.sql$/.exec(basename(path)) ?? [];
    if (time === undefined || idea === undefined) throw new Error(`${path} is not named <13 digits>-<idea>.sql`);
    return { name: `${idea}${time}`, path };
  });
  return files.toSorted((a, b) => basename(a.path).localeCompare(basename(b.path)));
}

function migrationClass({ name, path }: SqlFile): new () => MigrationInterface {
  return class implements MigrationInterface {
    readonly name = name;

    async up(runner: QueryRunner): Promise<void> {
      await runner.query(readFileSync(path, 'utf8'));
    }

    async down(): Promise<void> {
      throw new Error(`${name} cannot be undone: a ledger only grows. Restore a backup instead`);
    }
  };
}

/** The names of the migrations that this build of the service was made for. */
export function expectedMigrations(): readonly string[] {
  return sqlFiles().map(({ name }) => name);
}

/** A data source for the owner of the schema. Two connections: one holds the lock while the other migrates. */
export function ownerDataSource(url: string): DataSource {
  return new DataSource({
    type: 'postgres',
    url,
    migrations: sqlFiles().map(migrationClass),
    migrationsTableName: MIGRATION_TABLE,
    applicationName: 'decision-ledger migration',
    poolSize: 2,
    connectTimeoutMS: 10_000,
  });
}

/**
 * Brings the schema up to date and gives back the names of the migrations that ran. Each runs in a transaction of its
 * own, so a failure leaves the schema at the last one that succeeded.
 */
export async function migrate(ownerUrl: string): Promise<readonly string[]> {
  const dataSource = await ownerDataSource(ownerUrl).initialize();
  const lock = dataSource.createQueryRunner();
  try {
    await lock.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
    const ran = await dataSource.runMigrations({ transaction: 'each' });
    return ran.map(({ name }) => name);
  } finally {
    await lock.release();
    await dataSource.destroy();
  }
}

/** The migrations that the database still lacks. Needs no more than the service's role. */
export async function missingMigrations(dataSource: DataSource): Promise<readonly string[]> {
  const [table] = await dataSource.query<{ found: boolean }[]>(`SELECT to_regclass($1) IS NOT NULL AS found`, [
    MIGRATION_TABLE,
  ]);
  if (!table?.found) return expectedMigrations();
  const rows = await dataSource.query<{ name: string }[]>(`SELECT name FROM ${MIGRATION_TABLE}`);
  const applied = new Set(rows.map(({ name }) => name));
  return expectedMigrations().filter((name) => !applied.has(name));
}
