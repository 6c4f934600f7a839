import { afterAll, describe, expect, test } from '@jest/globals';
import { migrate } from '#database';
import { freshDatabase, type TestDatabase } from '../support/index.js';
import { migrationFiles } from '../support/schema.js';

const files = migrationFiles();
const bare = (sql: string): string => sql.replaceAll(/--.*/g, '').replaceAll(/'(?:[^']|'')*'/g, "''");
const each = files.map(({ folder, file, sql }) => [`${folder}/${file}`, sql] as const);

let database: TestDatabase | undefined;

afterAll(async () => {
  await database?.drop();
});

describe('a migration', () => {
  test.each(each)('%s is named by 13 digits and one idea in lower case', (path) => {
    expect(path).toMatch(/\/\d{13}-[a-z]+(-[a-z]+)*\.sql$/);
  });

  test('no two share their digits, and those of the examples come after those of the product', () => {
    const digits = files.map(({ file }) => file.slice(0, 13));
    const last = (wanted: boolean): string[] =>
      files.filter(({ folder }) => folder.startsWith('examples') === wanted).map(({ file }) => file);

    expect(new Set(digits).size).toBe(digits.length);
    expect((last(true).toSorted()[0] ?? '') > (last(false).toSorted().at(-1) ?? '')).toBe(true);
  });

  test.each(each)('%s begins with a sentence that says what it is about', (_path, sql) => {
    const [head = ''] = /^(?:--.*\n)+/.exec(sql) ?? [];
    const text = head.replaceAll(/^-- ?/gm, '').trim();

    expect(text).toMatch(/^[A-Z]/);
    expect(text).toMatch(/\.$/);
    expect(text.split('\n')[0]?.length).toBeGreaterThan(20);
  });

  test.each(each)('%s names the target of each ON CONFLICT', (_path, sql) => {
    expect(bare(sql).match(/ON CONFLICT(?!\s+ON CONSTRAINT\s+\w+\s+DO\b)/gi)).toBeNull();
  });

  test.each(each)('%s names each constraint', (_path, sql) => {
    const inline = bare(sql)
      .split('\n')
      .filter(
        (line) =>
          /\b(PRIMARY KEY|UNIQUE|REFERENCES|CHECK|EXCLUDE)\b/.test(line) &&
          !/\bCONSTRAINT \w+|WITH CHECK|CREATE UNIQUE INDEX/.test(line),
      );
    expect(inline).toEqual([]);
  });

  test.each(each)(
    '%s does nothing that a ledger must not: no DROP but of an index, no DISABLE, no owner’s rights, no cascade',
    (_path, sql) => {
      expect(
        bare(sql).match(
          /\b(DROP(?! INDEX)|TRUNCATE|DISABLE|SECURITY DEFINER|CASCADE|NO FORCE|BYPASSRLS|GRANT ALL|TO PUBLIC)\b/gi,
        ),
      ).toBeNull();
    },
  );

  test.each(each)('%s puts row-level security on each table that it makes', (_path, sql) => {
    for (const [, table] of sql.matchAll(/CREATE TABLE (\w+)/g)) {
      expect(sql).toContain(`ALTER TABLE ${table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;`);
      expect(sql).toContain(`CREATE POLICY tenant_isolation ON ${table}`);
    }
  });

  test('no statement in the code has an ON CONFLICT without a named constraint either', async () => {
    const { productFiles } = await import('../support/sources.js');
    const wrong = productFiles().filter(({ text }) =>
      /ON CONFLICT(?!\s+ON CONSTRAINT\s+\w+\s+DO\b)|\.orIgnore\(|\.upsert\(|\.save\(/i.test(text),
    );
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });

  test('all run on an empty database, and a second run finds nothing to do', async () => {
    database = await freshDatabase();
    const ran = await migrate(database.url);

    expect(ran).toHaveLength(files.length);
    expect(await migrate(database.url)).toEqual([]);
  });

  test('two that run at once take turns', async () => {
    const both = await freshDatabase();
    const ran = await Promise.all([migrate(both.url), migrate(both.url)]);
    await both.drop();

    expect(ran.map(({ length }) => length).toSorted((a, b) => a - b)).toEqual([0, files.length]);
  });
});
