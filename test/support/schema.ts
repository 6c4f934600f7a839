import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { migrate, PROJECT_ROOT } from '#database';
import { freshDatabase, type TestDatabase } from './database.js';

/** A fresh database with every migration, and no row in it. */
export async function migratedDatabase(): Promise<TestDatabase> {
  const database = await freshDatabase();
  await migrate(database.url);
  return database;
}

/** Made by TypeORM to remember which migrations ran: it holds nothing of any tenant. */
export const BOOKKEEPING = 'schema_migration';

/** The tables of the product and of the examples. */
export async function tablesOf(database: TestDatabase): Promise<string[]> {
  const rows = await database.query<{ name: string }>(
    `SELECT relname AS name FROM pg_class
      WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace AND relname <> $1 ORDER BY relname`,
    [BOOKKEEPING],
  );
  return rows.map(({ name }) => name);
}

/** The folders of migrations, as the service reads them. */
export const MIGRATION_FOLDERS = ['migrations', 'examples/migrations'] as const;

export interface SqlFile {
  readonly folder: string;
  readonly file: string;
  readonly sql: string;
}

export function migrationFiles(): SqlFile[] {
  return MIGRATION_FOLDERS.flatMap((folder) =>
    readdirSync(join(PROJECT_ROOT, folder)).map((file) => ({
      folder,
      file,
      sql: readFileSync(join(PROJECT_ROOT, folder, file), 'utf8'),
    })),
  );
}

/** The tables that the examples bring: they have no entity, and an adopter may drop them. */
export function exampleTables(): string[] {
  return migrationFiles()
    .filter(({ folder }) => folder.startsWith('examples'))
    .flatMap(({ sql }) => [...sql.matchAll(/CREATE TABLE (\w+)/g)].map(([, name = '']) => name));
}
