import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { DataSource, type EntityMetadata } from 'typeorm';
import * as access from '#access';
import * as actions from '#actions';
import * as decisions from '#decisions';
import * as effects from '#effects';
import * as idempotency from '#idempotency';
import * as ledger from '#ledger';
import * as log from '#log';
import { exampleTables, migratedDatabase, tablesOf } from '../support/schema.js';
import type { TestDatabase } from '../support/index.js';

/**
 * TypeORM's own comparison tells checks, unique constraints and foreign keys by their names and looks no further, and it
 * sees neither collations nor what it did not declare. This compares what they say.
 */

let database: TestDatabase;
let dataSource: DataSource;
let entities: readonly EntityMetadata[];

beforeAll(async () => {
  database = await migratedDatabase();
  const exported = [access, actions, decisions, effects, idempotency, ledger, log].flatMap((room) =>
    Object.values<unknown>(room),
  );
  dataSource = await new DataSource({
    type: 'postgres',
    url: database.url,
    entities: exported.filter(
      (value): value is new () => object => typeof value === 'function' && value.prototype !== undefined,
    ),
  }).initialize();
  entities = dataSource.entityMetadatas;
});

afterAll(async () => {
  await dataSource?.destroy();
  await database?.drop();
});

interface Named {
  readonly name: string;
  readonly says: string;
}

const byName = (a: Named, b: Named): number => (a.name < b.name ? -1 : 1);

/** What the database says of the constraints of one kind, in its own words. */
async function inDatabase(table: string, kind: 'c' | 'u' | 'f' | 'p'): Promise<Named[]> {
  return database.query<{ name: string; says: string }>(
    `SELECT conname AS name, pg_get_constraintdef(oid) AS says FROM pg_constraint WHERE conrelid = $1::regclass AND contype = $2 ORDER BY conname COLLATE "C"`,
    [table, kind],
  );
}

/** What the database makes of constraints when they are put on an empty copy of the table: the same words for the same rule. */
async function inWordsOfDatabase(
  table: string,
  declared: readonly (readonly [name: string, definition: string])[],
): Promise<Named[]> {
  await database.query(`CREATE TABLE copy_of_${table} (LIKE ${table})`);
  try {
    for (const [name, definition] of declared)
      await database.query(`ALTER TABLE copy_of_${table} ADD CONSTRAINT ${name} ${definition}`);
    const said = await inDatabase(`copy_of_${table}`, 'c');
    return said.toSorted(byName);
  } finally {
    await database.query(`DROP TABLE copy_of_${table}`);
  }
}

const columns = (list: readonly { databaseName: string }[]): string =>
  list.map(({ databaseName }) => databaseName).join(', ');

test('every table has an entity, save those of the examples, and every entity a table', async () => {
  const withEntity = entities.map(({ tableName }) => tableName);

  expect(withEntity.toSorted()).toEqual((await tablesOf(database)).filter((table) => !exampleTables().includes(table)));
});

/** One test a table would need their names before the database is there: a few lines of output are as good. */
async function ofEveryTable(
  compare: (entity: EntityMetadata) => Promise<readonly [declared: unknown, there: unknown]>,
): Promise<void> {
  expect(entities.length).toBeGreaterThan(8);
  for (const entity of entities) {
    const [declared, there] = await compare(entity);
    expect({ table: entity.tableName, says: declared }).toEqual({ table: entity.tableName, says: there });
  }
}

describe('an entity says of its table what the database says', () => {
  test('the checks, word for word', () =>
    ofEveryTable(async ({ tableName, checks }) => [
      await inWordsOfDatabase(
        tableName,
        checks.map(({ name, expression }) => [name ?? '', `CHECK (${expression})`]),
      ),
      await inDatabase(tableName, 'c'),
    ]));

  test('the unique constraints, with their columns in order', () =>
    ofEveryTable(async ({ tableName, uniques }) => [
      uniques.map((unique) => ({ name: unique.name, says: `UNIQUE (${columns(unique.columns)})` })).toSorted(byName),
      await inDatabase(tableName, 'u'),
    ]));

  test('the foreign keys, with their columns on both sides and what happens on deletion', () =>
    ofEveryTable(async ({ tableName, foreignKeys }) => [
      foreignKeys
        .map((key) => ({
          name: key.name,
          says:
            `FOREIGN KEY (${columns(key.columns)}) REFERENCES ${key.referencedEntityMetadata.tableName}(${columns(key.referencedColumns)})` +
            (key.onDelete === undefined || key.onDelete === 'NO ACTION' ? '' : ` ON DELETE ${key.onDelete}`),
        }))
        .toSorted(byName),
      await inDatabase(tableName, 'f'),
    ]));

  test('the primary key, with its columns in order', () =>
    ofEveryTable(async ({ tableName, primaryColumns }) => [
      [{ name: primaryColumns[0]?.primaryKeyConstraintName, says: `PRIMARY KEY (${columns(primaryColumns)})` }],
      await inDatabase(tableName, 'p'),
    ]));

  test('the indexes, with their columns in order', () =>
    ofEveryTable(async ({ tableName, indices }) => [
      indices
        .map((index) => ({
          name: index.name,
          says: `${index.isUnique ? 'UNIQUE ' : ''}(${columns(index.columns)})${index.where === undefined ? '' : ` WHERE ${index.where}`}`,
        }))
        .toSorted(byName),
      await database.query(
        `SELECT c.relname AS name,
                CASE WHEN i.indisunique THEN 'UNIQUE ' ELSE '' END || substring(pg_get_indexdef(i.indexrelid) FROM 'USING btree (.*)$') AS says
           FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
          WHERE i.indrelid = $1::regclass AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u')) ORDER BY 1`,
        [tableName],
      ),
    ]));

  test('the columns: name, type, NULL, default and collation, and that the text of an identity is compared in C', () =>
    ofEveryTable(async ({ tableName, columns: declared }) => [
      declared
        .map((column) => ({
          name: column.databaseName,
          type: dataSource.driver.normalizeType(column),
          nullable: column.isNullable,
          default:
            column.asExpression ??
            (typeof column.default === 'function'
              ? column.default()
              : column.default === undefined
                ? null
                : JSON.stringify(column.default)),
          collation: column.collation ?? null,
        }))
        .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
      await database.query(
        `SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
                NOT a.attnotnull AS nullable, pg_get_expr(d.adbin, d.adrelid) AS default, nullif(l.collname, 'default') AS collation
           FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum LEFT JOIN pg_collation l ON l.oid = a.attcollation
          WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attname COLLATE "C"`,
        [tableName],
      ),
    ]));
});
