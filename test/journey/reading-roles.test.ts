import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { PROJECT_ROOT, SERVICE_ROLE } from '#database';
import type { DecisionListRow } from '#ledger';
import { Random } from '../support/bad-case.js';
import { startForgetful } from '../support/forgetful.js';
import { Client, type Service } from '../support/index.js';
import { populate, POPULATION_ACTIONS } from '../support/population.js';
import { walked } from '../support/reading.js';
import { rowCounts } from '../support/row-counts.js';
import { tablesOf } from '../support/schema.js';
import { putActions, setStage, type Cast, type Stage } from '../support/stage.js';

const openapi: { paths: Record<string, Record<string, { parameters?: { name: string; in: string }[] }>> } = JSON.parse(
  readFileSync(join(PROJECT_ROOT, 'openapi/openapi.json'), 'utf8'),
);
const routes = Object.entries(openapi.paths).flatMap(([path, methods]) =>
  Object.keys(methods).map((method) => [method.toUpperCase(), path] as const),
);

let stage: Stage;
let globex: Cast;
let forgetful: Service | undefined;
/** Ids of the first tenant, by the name of the parameter of a path. */
let ids: Record<string, string>;
beforeAll(async () => {
  stage = await setStage({ actions: { ...POPULATION_ACTIONS, 'only.here': { execution: 'transactional' } } });
  globex = await stage.addTenant('globex');
  await putActions(globex.admin, POPULATION_ACTIONS);
  await populate(stage, new Random('mine'), 30);
  const [row] = (await stage.auditor.get('/v1/decisions?outcome=applied&limit=1')).body.items;
  const [, credentialId = ''] = stage.tokens.orchestrator.split('_');
  ids = {
    decisionId: row.decisionId,
    ledgerEntryId: row.ledgerEntryId,
    key: row.key,
    action: 'only.here',
    credentialId,
  };
});
afterAll(async () => {
  await forgetful?.kill();
  await stage?.clear();
});

const filled = (path: string): string =>
  path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => encodeURIComponent(ids[name] ?? ''));

describe('an auditor writes nothing, anywhere', () => {
  test.each(routes.filter(([method]) => method !== 'GET'))(
    '%s %s is 403, and no row of any table changes',
    async (method, path) => {
      const before = await rowCounts(stage.database);
      for (const body of [undefined, {}, { inputs: {} }, 'no json']) {
        const reply = await stage.auditor.send(method, filled(path), body === undefined ? {} : { body });
        expect([reply.status, reply.body?.code]).toEqual([403, 'forbidden']);
      }
      expect(await rowCounts(stage.database)).toEqual(before);
    },
  );

  test('there are routes that write', () => {
    expect(routes.filter(([method]) => method !== 'GET').length).toBeGreaterThan(8);
  });
});

describe('who may read what', () => {
  const AUDITORS_ONLY = [
    '/v1/decisions/count',
    '/v1/attempts',
    '/v1/attempts/count',
    '/v1/ledger/entries',
    '/v1/ledger/entries/{ledgerEntryId}',
  ].concat(['/v1/exports/decisions', '/v1/access-log']);
  const ORCHESTRATORS_TOO = [
    '/v1/decisions',
    '/v1/decisions/{decisionId}',
    '/v1/idempotency-records/{key}',
    '/v1/actions/{action}/versions',
  ];

  test.each([...AUDITORS_ONLY, ...ORCHESTRATORS_TOO])('%s', async (path) => {
    const statusFor = async (client: Client): Promise<number> => (await client.get(filled(path))).status;
    const statuses = [
      await statusFor(stage.auditor),
      await statusFor(stage.admin),
      await statusFor(stage.orchestrator),
    ];
    expect(statuses).toEqual([200, 200, AUDITORS_ONLY.includes(path) ? 403 : 200]);
  });

  test('every list of another tenant is empty, every filter finds nothing there, and every id is 404', async () => {
    const filters = new URLSearchParams({ decisionId: ids['decisionId'] ?? '' });
    for (const client of [globex.auditor, globex.admin]) {
      for (const path of ['/v1/decisions', '/v1/attempts', '/v1/ledger/entries'])
        for (const query of ['', `?${filters}`, `?key=${ids['key']}`, `?credentialId=${ids['credentialId']}`])
          expect([path, query, (await client.get(path + query)).body]).toEqual([
            path,
            query,
            { items: [], nextCursor: null },
          ]);
      for (const path of ['/v1/decisions/count', '/v1/attempts/count'])
        expect((await client.get(`${path}?groupBy=action`)).body).toEqual({ total: 0, groups: [] });
      expect((await client.get(`/v1/exports/decisions?${filters}`)).text.split('\n')).toHaveLength(2);
      for (const path of [
        '/v1/decisions/{decisionId}',
        '/v1/ledger/entries/{ledgerEntryId}',
        '/v1/idempotency-records/{key}',
        '/v1/actions/{action}/versions',
      ])
        expect([path, (await client.get(filled(path))).status]).toEqual([path, 404]);
      expect((await client.get(`/v1/access-log?credentialId=${ids['credentialId']}`)).body.items).toEqual([]);
    }
  });
});

describe('behind the WHERE clause', () => {
  beforeAll(async () => {
    await populate({ ...stage, ...globex }, new Random('yours'), 30);
    await walked(globex.auditor, '/v1/decisions', {});
  });

  async function asService<T>(tenant: string | null, work: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = new pg.Client({ connectionString: stage.database.url });
    await client.connect();
    try {
      await client.query('BEGIN');
      await client.query(`SET LOCAL ROLE ${SERVICE_ROLE}`);
      if (tenant !== null) await client.query(`SELECT set_config('app.tenant', $1, true)`, [tenant]);
      return await work(client);
    } finally {
      await client.end();
    }
  }

  test('no table shows a row of another tenant, and those that are read have rows of both', async () => {
    const tables = await tablesOf(stage.database);
    for (const table of tables) {
      const seen = async (tenant: string | null): Promise<string[]> =>
        asService(tenant, async (client) =>
          (await client.query(`SELECT DISTINCT tenant_id FROM ${table}`)).rows.map((row) => row.tenant_id),
        );
      expect([table, (await seen('globex')).filter((tenant) => tenant !== 'globex')]).toEqual([table, []]);
      expect([table, await seen(null)]).toEqual([table, []]);
    }
    for (const table of [
      'decision_record',
      'attempt',
      'ledger_entry',
      'recorded_decision',
      'abandoned_decision',
      'idempotency_record',
      'bound_key',
      'access',
      'access_end',
    ])
      expect([table, await stage.database.count(`SELECT count(DISTINCT tenant_id) FROM ${table}`)]).toEqual([table, 2]);
  });

  test('a reading side that forgets its conditions on the tenant answers just the same', async () => {
    forgetful = await startForgetful(stage.database.url);
    const { url } = forgetful;
    const answers = async ({
      auditor,
      tokens,
    }: Cast): Promise<readonly (readonly [path: string, right: string, forgot: string])[]> => {
      const [own] = (await auditor.get('/v1/decisions?outcome=applied&limit=1')).body.items;
      return Promise.all(
        pathsFor(own).map(async (path) => {
          const forgot = await new Client(url, tokens.auditor).get(path);
          return [path, withoutCursor((await auditor.get(path)).text), withoutCursor(forgot.text)] as const;
        }),
      );
    };
    for (const cast of [stage, globex])
      for (const [path, right, forgot] of await answers(cast)) expect([path, forgot]).toEqual([path, right]);
    // Without the second wall it does show what it should not: these statements have indeed forgotten.
    for (const table of await tablesOf(stage.database))
      await stage.database.query(`ALTER TABLE ${table} DISABLE ROW LEVEL SECURITY`);
    const leaked = (await answers(stage)).filter(([, right, forgot]) => right !== forgot);
    expect(leaked.length).toBeGreaterThan(6);
  });
});

const withoutCursor = (text: string): string => text.replaceAll(/"nextCursor":"[^"]*"/g, '');

/** A question of every kind. Both tenants have the keys, steps and runs of which it speaks. */
const pathsFor = (own: DecisionListRow): readonly string[] => [
  '/v1/decisions?limit=500',
  '/v1/decisions?limit=500&order=desc&state=failed',
  `/v1/decisions?key=${own.key}`,
  `/v1/decisions?contentKey=${own.contentKey}`,
  '/v1/decisions?stepId=s-1&runId=r-1',
  '/v1/decisions/count?groupBy=action,state,day',
  `/v1/decisions/${own.decisionId}`,
  '/v1/attempts?limit=500',
  '/v1/attempts?limit=500&action=call.out',
  '/v1/attempts/count?groupBy=disposition,state',
  '/v1/ledger/entries?limit=500',
  `/v1/ledger/entries/${own.ledgerEntryId}`,
  `/v1/idempotency-records/${own.key}`,
  '/v1/exports/decisions?recordedTo=2100-01-01T00:00:00Z',
];
