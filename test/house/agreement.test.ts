import 'reflect-metadata';
import { describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { PROJECT_ROOT } from '#database';
import { ATTEMPT_FILTERS, ATTEMPT_GROUP_NAMES, DECISION_FILTERS, DECISION_GROUP_NAMES } from '#ledger';
import { PROBLEMS } from '#problem';
import { DecisionFilterQuery, ListDecisionsQuery } from '../../apps/api/src/reading/queries.js';
import { fieldsOf } from '../../apps/api/src/fields/field.js';
import { LIST_PARAMETERS } from '../support/bad-targets.js';
import { nodesOf, productFiles } from '../support/sources.js';

interface Operation {
  readonly operationId?: string;
  readonly parameters?: readonly { name: string; in: string; required?: boolean; schema?: { pattern?: string } }[];
  readonly responses?: Readonly<
    Record<
      string,
      {
        content?: Readonly<
          Record<
            string,
            { examples?: Readonly<Record<string, { value: { code: string; status: number; retryable: boolean } }>> }
          >
        >;
      }
    >
  >;
}

const openapi: { openapi: string; paths: Record<string, Record<string, Operation>> } = JSON.parse(
  readFileSync(join(PROJECT_ROOT, 'openapi/openapi.json'), 'utf8'),
);
const operations = Object.entries(openapi.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ route: `${method.toUpperCase()} ${path}`, operation })),
);

/** The contract's filters, as a client may rely on them, and one more. */
const FILTERS = [
  'action',
  'actionVersion',
  'subjectType',
  'subjectId',
  'modelId',
  'modelVersion',
  'promptTemplateSha256',
  'retrievalSnapshotId',
  'policyVersion',
  'reportingPeriod',
  'outcome',
  'reason',
  'state',
  'key',
  'contentKey',
  'downstreamKey',
  'externalRef',
  'stepId',
  'runId',
  'credentialId',
  'decisionId',
  'recordedFrom',
  'recordedTo',
];
const PAGING = ['limit', 'order', 'cursor'];

/** The contract's names to count by: of both, and of attempts alone. */
const GROUPS = [
  'action',
  'actionVersion',
  'outcome',
  'reason',
  'state',
  'modelId',
  'modelVersion',
  'promptTemplateSha256',
].concat(['policyVersion', 'retrievalSnapshotId', 'subjectType', 'reportingPeriod', 'day', 'month']);
const ATTEMPT_GROUPS = ['credentialId', 'disposition'];

/** Every parameter of every question, as the contract has them. */
const QUESTIONS: Readonly<Record<string, readonly string[]>> = {
  '/v1/decisions': [...FILTERS, ...PAGING],
  '/v1/decisions/count': [...FILTERS, 'groupBy'],
  '/v1/attempts': [...FILTERS, 'disposition', ...PAGING],
  '/v1/attempts/count': [...FILTERS, 'disposition', 'groupBy'],
  '/v1/ledger/entries': [...FILTERS, ...PAGING],
  '/v1/exports/decisions': [...FILTERS, 'format', 'order', 'cursor'],
  '/v1/access-log': ['credentialId', 'route', 'from', 'to', ...PAGING],
};

describe('one list of filters', () => {
  test('the table of the reader, the query of the route and the contract name the same', () => {
    const names = (type: new () => object): string[] => fieldsOf(type).map(({ name }) => name);

    expect(Object.keys(DECISION_FILTERS)).toEqual(FILTERS);
    expect(names(DecisionFilterQuery)).toEqual(FILTERS);
    expect(names(ListDecisionsQuery)).toEqual([...FILTERS, ...PAGING]);
    expect(fieldsOf(ListDecisionsQuery).every(({ isOptional }) => isOptional)).toBe(true);
  });

  test.each(Object.keys(openapi.paths).filter((path) => !path.startsWith('/v1/log/')))(
    'the description of %s names the parameters of the contract, none of them required',
    (path) => {
      const documented = (openapi.paths[path]?.['get']?.parameters ?? []).filter(
        (parameter) => parameter.in === 'query',
      );

      expect(documented.map(({ name }) => name)).toEqual(QUESTIONS[path] ?? []);
      expect(documented.filter(({ required }) => required === true)).toEqual([]);
    },
  );

  test('what is an attempt’s own is that of the contract, and everything else of it is its decision’s', () => {
    const own = ['disposition', 'stepId', 'runId', 'credentialId', 'recordedFrom', 'recordedTo'];

    expect(Object.keys(ATTEMPT_FILTERS)).toEqual(own);
  });

  test('the names to count by are those of the contract', () => {
    const words = (path: string): string[] => {
      const [groupBy] = (openapi.paths[path]?.['get']?.parameters ?? []).filter(({ name }) => name === 'groupBy');
      const [, list = ''] = /^\^\(([^)]*)\)/.exec(groupBy?.schema?.pattern ?? '') ?? [];
      return list.split('|').toSorted();
    };

    expect(DECISION_GROUP_NAMES.toSorted()).toEqual(GROUPS.toSorted());
    expect(ATTEMPT_GROUP_NAMES.toSorted()).toEqual([...GROUPS, ...ATTEMPT_GROUPS].toSorted());
    expect(words('/v1/decisions/count')).toEqual(GROUPS.toSorted());
    expect(words('/v1/attempts/count')).toEqual([...GROUPS, ...ATTEMPT_GROUPS].toSorted());
  });

  test('the tests that spoil them know all of them', () => {
    expect(Object.keys(LIST_PARAMETERS)).toEqual([...FILTERS, ...PAGING]);
  });
});

/** The contract's problems: status, and whether the same request may succeed later. */
const CONTRACT: Readonly<Record<string, readonly [status: number, retryable: boolean]>> = {
  'malformed-request': [400, false],
  'validation-failed': [400, false],
  'invalid-idempotency-key': [400, false],
  unauthenticated: [401, false],
  forbidden: [403, false],
  'tenant-mismatch': [403, false],
  'not-found': [404, false],
  'method-not-allowed': [405, false],
  'duplicate-subject': [409, false],
  refused: [409, false],
  'same-content': [409, false],
  'tenant-exists': [409, false],
  'lease-lost': [409, false],
  'outcome-unknown': [409, false],
  'not-unknown': [409, false],
  'in-flight': [409, true],
  'not-sealed': [409, true],
  'too-large': [413, false],
  'unsupported-media-type': [415, false],
  'fingerprint-mismatch': [422, false],
  'key-derivation-mismatch': [422, false],
  'unknown-action': [422, false],
  'host-not-allowed': [422, false],
  'unknown-secret': [422, false],
  internal: [500, true],
  unavailable: [503, true],
};

/** Those that nothing here answers with (yet): fixed all the same. */
const LATER: typeof CONTRACT = {
  'too-many-requests': [429, true],
  'unsupported-execution': [422, false],
};

/** Answered where no route is: there is no page of a route to show them on. */
const WITHOUT_ROUTE = ['method-not-allowed'];

describe('one list of problems', () => {
  const examples = operations.flatMap(({ route, operation }) =>
    Object.entries(operation.responses ?? {}).flatMap(([status, { content }]) =>
      Object.entries(content?.['application/problem+json']?.examples ?? {}).map(([name, { value }]) => ({
        route,
        status: Number(status),
        name,
        value,
      })),
    ),
  );

  test('the catalogue has every problem of the contract that is served, with its status and whether to retry', () => {
    expect(
      Object.fromEntries(
        Object.entries(PROBLEMS)
          .filter(([code]) => code in CONTRACT)
          .map(([code, { status, retryable }]) => [code, [status, retryable]]),
      ),
    ).toEqual(CONTRACT);
  });

  test('and no other', () => {
    const others = Object.entries(PROBLEMS)
      .filter(([code]) => !(code in CONTRACT))
      .map(([code, { status, retryable }]) => [code, [status, retryable]]);
    expect(others).toEqual(others.map(([code]) => [code, LATER[String(code)]]));
  });

  test('every one is shown on the page of a route that answers with it', () => {
    const shown = new Set(examples.map(({ name }) => name));
    expect(Object.keys(PROBLEMS).filter((code) => !shown.has(code) && !WITHOUT_ROUTE.includes(code))).toEqual([]);
  });

  test('each example is what it says: its name, its status, whether to retry', () => {
    expect(examples.length).toBeGreaterThan(50);
    for (const { route, status, name, value } of examples) {
      const [expected, retryable] = CONTRACT[name] ?? LATER[name] ?? [];
      expect([route, name, value.code, value.status, status, value.retryable]).toEqual([
        route,
        name,
        name,
        expected,
        expected,
        retryable,
      ]);
    }
  });

  test('docs/problems.md has a row for each, with its status and whether to retry', () => {
    const page = readFileSync(join(PROJECT_ROOT, 'docs/problems.md'), 'utf8');
    for (const [code, { status, retryable }] of Object.entries(PROBLEMS))
      expect(page).toContain(`| ${status} | \`${code}\` | ${retryable ? 'yes' : 'no'} |`);
    expect(page.match(/^\| \d{3} /gm)).toHaveLength(Object.keys(PROBLEMS).length);
  });

  test('every code that is thrown is in the catalogue, and every code of the catalogue is thrown somewhere', () => {
    const thrown = new Set(
      productFiles().flatMap((file) =>
        nodesOf(file).flatMap((node) => {
          if (!ts.isNewExpression(node) || node.expression.getText() !== 'Problem') return [];
          const [code] = node.arguments ?? [];
          return code !== undefined && ts.isStringLiteral(code) ? [code.text] : [];
        }),
      ),
    );
    expect([...thrown].filter((code) => !(code in PROBLEMS))).toEqual([]);
    expect(Object.keys(PROBLEMS).filter((code) => !thrown.has(code))).toEqual([]);
  });
});

describe('the description of the API', () => {
  test('is OpenAPI 3.1, and every operation has an id of its own', () => {
    const ids = operations.map(({ operation }) => operation.operationId);

    expect(openapi.openapi).toMatch(/^3\.1/);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).not.toContain(undefined);
  });

  test('has the routes of the contract that are served', () => {
    expect(operations.map(({ route }) => route)).toEqual(
      expect.arrayContaining([
        'POST /v1/tenants',
        'POST /v1/credentials',
        'GET /v1/credentials',
        'DELETE /v1/credentials/{credentialId}',
        'PUT /v1/actions/{action}',
        'GET /v1/actions',
        'GET /v1/actions/{action}',
        'POST /v1/decisions',
        'POST /v1/decisions/batch',
        'GET /v1/decisions',
        'GET /v1/decisions/{decisionId}',
        'GET /v1/decisions/count',
        'GET /v1/idempotency-records/{key}',
        'GET /v1/attempts',
        'GET /v1/attempts/count',
        'GET /v1/ledger/entries',
        'GET /v1/ledger/entries/{ledgerEntryId}',
        'GET /v1/exports/decisions',
        'GET /v1/access-log',
        'GET /v1/actions/{action}/versions',
        'GET /healthz',
        'GET /readyz',
      ]),
    );
  });

  test('says of every route under /v1 that a stranger gets 401 and that a failure is 500 or 503', () => {
    for (const { route, operation } of operations.filter(({ route: name }) => name.includes('/v1/')))
      expect([
        route,
        ['401', '403', '500', '503'].filter((status) => !(status in (operation.responses ?? {}))),
      ]).toEqual([route, []]);
  });
});
