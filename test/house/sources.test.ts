import { describe, expect, test } from '@jest/globals';
import ts from 'typescript';
import { posix } from 'node:path';
import { filesOf, importsOf, lineOf, nodesOf, partOf, productFiles } from '../support/sources.js';
import { migrationFiles } from '../support/schema.js';

const product = productFiles();
const ROOMS = ['idempotency', 'decisions', 'effects'];

/** Who owns which table: nobody else writes it in TypeScript, and no other room names it in SQL. */
const OWNERS: Readonly<Record<string, string>> = {
  tenant: 'access',
  credential: 'access',
  action_version: 'actions',
  idempotency_record: 'idempotency',
  bound_key: 'idempotency',
  ended_lease: 'idempotency',
  decision_record: 'decisions',
  attempt: 'decisions',
  effect: 'effects',
  ledger_entry: 'ledger',
  abandoned_decision: 'ledger',
  recorded_decision: 'ledger',
  uncopied_entry: 'ledger',
  access: 'ledger',
  access_end: 'ledger',
  unsealed_entry: 'log',
  log_leaf: 'log',
  log_tile: 'log',
  log_tree: 'log',
  log_key: 'log',
};

/** The client is a package of its own, in which `#key` would not resolve: one file of it takes the key library along. */
const SELF_CONTAINED: Readonly<Record<string, string>> = { 'libs/client/src/key.ts': '../../key/src/index.js' };

describe('the folders', () => {
  test('are the ones of the house', () => {
    expect([...new Set(product.map(({ path }) => partOf(path)).filter((part) => part.startsWith('apps/')))]).toEqual([
      'apps/api',
      'apps/operator',
      'apps/worker',
    ]);
    for (const part of new Set(product.map(({ path }) => partOf(path))))
      expect(part).toMatch(
        /^(apps\/(api|worker|operator)|libs\/(access|actions|client|database|decisions|effects|idempotency|key|ledger|log|problem)|examples\/.*)$/,
      );
  });

  test('each lib has one front door, written by hand: names, from its own files', () => {
    const doors = product.filter(({ path }) => path.endsWith('/index.ts'));
    const wrong = doors.flatMap((file) =>
      importsOf(file)
        .filter(
          ({ from, isExport, isStar }) =>
            isStar ||
            (isExport &&
              (!/^\.\/((dispatch|reading|pure|sealing|verifier)\/)?[a-z0-9.-]+\.js$/.test(from) ||
                from.endsWith('/index.js'))),
        )
        .map(({ from }) => `${file.path}: ${from}`),
    );
    expect(new Set(doors.filter(({ path }) => path.startsWith('libs/')).map(({ path }) => path))).toEqual(
      new Set(product.filter(({ path }) => path.startsWith('libs/')).map(({ path }) => `${partOf(path)}/src/index.ts`)),
    );
    expect(wrong).toEqual([]);
  });

  test('no import goes into a lib but by its front door, and none leaves a lib by a relative path', () => {
    const wrong = product.flatMap((file) =>
      importsOf(file)
        .filter(
          ({ from }) =>
            !(file.path in SELF_CONTAINED && from === SELF_CONTAINED[file.path]) &&
            (/^#\w+\//.test(from) ||
              (from.startsWith('.') &&
                file.path.startsWith('libs/') &&
                partOf(posix.join(posix.dirname(file.path), from)) !== partOf(file.path))),
        )
        .map(({ from }) => `${file.path}: ${from}`),
    );
    expect(wrong).toEqual([]);
  });
});

describe('who may import what', () => {
  const imported = product.flatMap((file) => importsOf(file).map(({ from }) => ({ path: file.path, from })));

  test('the three rooms never import one another, nor the ledger', () => {
    expect(
      imported.filter(
        ({ path, from }) =>
          ROOMS.some((room) => path.startsWith(`libs/${room}/`)) && [...ROOMS, 'ledger'].includes(from.slice(1)),
      ),
    ).toEqual([]);
  });

  test('only apps import what speaks HTTP, save the room that calls other systems', () => {
    expect(
      imported.filter(
        ({ path, from }) =>
          !path.startsWith('apps/') &&
          !path.startsWith('libs/effects/src/dispatch/') &&
          /^(node:)?https?$|^(node:)?http2$|fastify|express|@nestjs\/(swagger|platform)|class-validator/.test(from),
      ),
    ).toEqual([]);
  });

  test('key imports its canonicaliser and a hash; problem imports nothing', () => {
    const outside = (lib: string): string[] => [
      ...new Set(
        imported
          .filter(({ path, from }) => path.startsWith(`libs/${lib}/`) && !from.startsWith('./'))
          .map(({ from }) => from),
      ),
    ];
    expect(outside('key').toSorted()).toEqual(['canonicalize', 'node:crypto']);
    expect(outside('problem')).toEqual([]);
  });

  test('the pure part of the log imports the key library and cryptography, the verifier files beside them', () => {
    const outside = (part: string): string[] =>
      [
        ...new Set(
          imported
            .filter(({ path, from }) => path.startsWith(`libs/log/src/${part}/`) && !from.startsWith('.'))
            .map(({ from }) => from),
        ),
      ].toSorted();
    expect(outside('pure')).toEqual(['#key', 'node:crypto']);
    for (const from of outside('verifier')) expect(from).toMatch(/^(#key|node:(crypto|fs|fs\/promises|path|util))$/);
  });

  test('key and the pure part of the log have no clock and no chance', () => {
    const wrong = product.filter(
      ({ path, text }) =>
        /^libs\/(key|log\/src\/pure)\//.test(path) &&
        /\bDate\b|performance|random/i.test(text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')),
    );
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });

  test('nothing asks this machine what time it is, save for the name of a folder: leases are judged by the database', () => {
    const asking = product.filter(({ text }) => /\bDate\.now\b|new Date\(\)/.test(text));
    expect(asking.map(({ path }) => path)).toEqual(['libs/database/src/embedded-binaries.ts']);
  });

  test('only libs/database reads the environment; a main hands it on to readSettings', () => {
    const wrong = product
      .filter(({ path }) => !path.startsWith('libs/database/'))
      .filter(({ path, text }) =>
        /process\.env\b/.test(
          /^apps\/\w+\/src\/main\.ts$/.test(path) ? text.replaceAll('readSettings(process.env)', '') : text,
        ),
      );
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });
});

describe('who may touch which table', () => {
  const tables = Object.keys(OWNERS).join('|');
  const written = new RegExp(`\\b(?:INSERT INTO|UPDATE|DELETE FROM|TRUNCATE)\\s+(${tables})\\b`, 'g');
  const named = new RegExp(`\\b(?:FROM|JOIN|INTO|UPDATE)\\s+(${tables})\\b`, 'g');

  test('TypeScript writes a table in the lib that owns it', () => {
    const wrong = product.flatMap(({ path, text }) =>
      [...text.matchAll(written)]
        .filter(([, table = '']) => partOf(path) !== `libs/${OWNERS[table]}`)
        .map(([statement]) => `${path}: ${statement}`),
    );
    expect(wrong).toEqual([]);
  });

  test('TypeScript outside the ledger reads no table but its own, and none of the apps and handlers names one at all', () => {
    const wrong = product
      .filter(({ path }) => !path.startsWith('libs/ledger/'))
      .flatMap(({ path, text }) =>
        [...text.matchAll(named)]
          .filter(([, table = '']) => partOf(path) !== `libs/${OWNERS[table]}`)
          .map(([statement]) => `${path}: ${statement}`),
      );
    expect(wrong).toEqual([]);
  });

  test('a migration of one room names no table and no function of another; they meet in the ledger', () => {
    const rooms = migrationFiles().flatMap(({ file, sql }) => {
      const room = /^\d+-(\w+)\.sql$/.exec(file)?.[1] ?? '';
      return ROOMS.includes(room)
        ? [
            {
              room,
              bodies: sql.replaceAll(/--.*/g, '').replaceAll(/CREATE TABLE [\s\S]*?\n\);/g, ''),
              functions: [...sql.matchAll(/CREATE FUNCTION (\w+)/g)].map(([, name]) => name),
            },
          ]
        : [];
    });
    expect(rooms.map(({ room }) => room).toSorted()).toEqual(ROOMS.toSorted());
    for (const { room, bodies } of rooms) {
      const strangers = [
        ...Object.entries(OWNERS)
          .filter(([, owner]) => [...ROOMS, 'ledger'].includes(owner) && owner !== room)
          .map(([table]) => table),
        ...rooms.filter((other) => other.room !== room).flatMap(({ functions }) => functions),
      ];
      expect([
        room,
        strangers.filter((name) =>
          new RegExp(`\\b${name}\\b`).test(bodies.replaceAll(/p_\w+|v_\w+|r\.\w+|e\.\w+|d\.\w+/g, '')),
        ),
      ]).toEqual([room, []]);
    }
  });

  test('only the ledger begins a transaction that enters no tenant by itself', () => {
    const wrong = product.filter(
      ({ path, text }) =>
        !/^libs\/(ledger|database)\//.test(path) &&
        /\.bare\(|startTransaction|createQueryRunner|@Transactional/.test(text),
    );
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });
});

/** Where a type is asserted, and why it cannot be told otherwise. */
const ASSERTIONS: Readonly<Record<string, string>> = {
  'libs/client/src/answers.ts': 'the result is given back in the type that the caller names',
  'libs/client/src/ledgered.ts': 'an identity names the action, and an action has one tool',
  'apps/api/src/fields/field.ts': 'a schema is put together from parts that only together have its type',
  'apps/api/src/openapi-document.ts': 'the schema is written as a constant, and the document wants it changeable',
};

describe('the compiler is told the truth', () => {
  test('no any, no "!", and an assertion only where one is listed', () => {
    const wrong = product.flatMap((file) =>
      nodesOf(file)
        .filter(
          (node) =>
            node.kind === ts.SyntaxKind.AnyKeyword ||
            ts.isNonNullExpression(node) ||
            ts.isTypeAssertionExpression(node) ||
            (ts.isAsExpression(node) && node.type.getText() !== 'const'),
        )
        .filter((node) => !(ts.isAsExpression(node) && file.path in ASSERTIONS))
        .map((node) => `${file.path}:${lineOf(node)} ${node.getText().slice(0, 60)}`),
    );
    expect(wrong).toEqual([]);
  });

  test('nothing is silenced: no ts-ignore, no lint comment', () => {
    const wrong = product.filter(({ text }) => /@ts-(ignore|expect-error|nocheck)|(eslint|oxlint)-disable/.test(text));
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });
});

/** Files that are longer than a reader should have to bear, and why. */
const LONG: Readonly<Record<string, string>> = {};
const MOST_LINES = 300;

describe('what fits a reader', () => {
  test('no file has more than 300 lines without a reason', () => {
    const long = filesOf(['apps', 'libs', 'examples', 'migrations', 'test', 'scripts', 'bench'], /\.(ts|mjs|sql)$/)
      .map(({ path, text }) => ({ path, lines: text.split('\n').length - 1 }))
      .filter(({ path, lines }) => lines > MOST_LINES && !(path in LONG));
    expect(long).toEqual([]);
  });

  test('no method has more than three decorators, no constructor more than five parameters', () => {
    const wrong = product.flatMap((file) =>
      nodesOf(file)
        .filter(
          (node) =>
            (ts.isMethodDeclaration(node) && (ts.getDecorators(node)?.length ?? 0) > 3) ||
            (ts.isConstructorDeclaration(node) && node.parameters.length > 5),
        )
        .map((node) => `${file.path}:${lineOf(node)}`),
    );
    expect(wrong).toEqual([]);
  });

  test('no comment is a note to self, and none is code', () => {
    // One letter in brackets, here and below, so that this file is not what it looks for.
    const leftover = /\b(T[O]DO|FIX[M]E|XX[X]|HA[C]K|W[I]P)\b/;
    const code = /^\s*\/\/ ?(const|let|return|import|export|if \(|await|for \(|\}|expect\()/m;
    const files = filesOf().filter(({ path }) => path !== 'package-lock.json');
    expect(files.filter(({ text }) => leftover.test(text)).map(({ path }) => path)).toEqual([]);
    expect(
      files.filter(({ path, text }) => /\.(ts|mjs)$/.test(path) && code.test(text)).map(({ path }) => path),
    ).toEqual([]);
  });

  test('no file names the machine that it was written on, or a registry', () => {
    const machine =
      /\/[w]ork\/|\/[h]ome\/|\/[U]sers\/|\b[C]:\\|registry\.(?:npm|yarn)|npm[j]s\.org|[a]rtifactory|"[r]esolved":/;
    const wrong = filesOf().filter(({ text }) => machine.test(text));
    expect(wrong.map(({ path, text }) => `${path}: ${machine.exec(text)?.[0]}`)).toEqual([]);
  });
});
