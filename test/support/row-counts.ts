import type { Auditable } from './audit.js';

export type RowCounts = Readonly<Record<string, number>>;

/**
 * How many rows each table of the schema has, whichever tables there are, save those of the log of accesses: to learn that
 * something is not there is to have looked, and is on record.
 */
export async function rowCounts(database: Auditable): Promise<RowCounts> {
  const tables = await database.query<{ name: string }>(
    `SELECT format('%I', relname) AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
        AND relname NOT IN ('access', 'access_end') ORDER BY relname`,
  );
  const counts = tables.map(({ name }) => `SELECT '${name}' AS name, count(*)::integer AS rows FROM ${name}`);
  const rows = await database.query<{ name: string; rows: number }>(counts.join(' UNION ALL '));
  return Object.fromEntries(rows.map((row) => [row.name, row.rows]));
}
