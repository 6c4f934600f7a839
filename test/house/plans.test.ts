import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import type { DataSource } from 'typeorm';
import { Database, serviceDataSource } from '#database';
import {
  AttemptReader,
  DecisionExport,
  DecisionReader,
  EntryReader,
  type AttemptFilterName,
  type AttemptFilters,
  type DecisionFilterName,
} from '#ledger';
import { populate } from '../../bench/population.mjs';
import { IS_LONG, rounds, seeded } from '../support/rounds.js';
import { migratedDatabase } from '../support/schema.js';
import type { TestDatabase } from '../support/database.js';

/**
 * No question reads a whole table. PostgreSQL is asked how it would answer each, on a population large enough for it to mind:
 * of its tenants the first has every other decision.
 */
const DECISIONS = 100_000;
const TENANT = 'acme';
const PAIRS_SEED = 4;
const PAIRS_SHARE = 0.15;
const PAGING = { limit: 50, cursor: null } as const;

/** Small tables may be read whole: nobody minds. */
const BIG = [
  'attempt',
  'bound_key',
  'decision_record',
  'effect',
  'idempotency_record',
  'ledger_entry',
  'recorded_decision',
];

let database: TestDatabase;
let dataSource: DataSource;
let reading: Database;
let asked: { sql: string; parameters: unknown[] }[] = [];

/** One decision's value for each filter of decisions, as its row has it. */
let samples: Readonly<Record<DecisionFilterName, string>>[];

beforeAll(async () => {
  database = await migratedDatabase();
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await populate(client, { decisions: DECISIONS });
  await client.end();
  dataSource = serviceDataSource(database.url, 1);
  const quiet = (): void => undefined;
  dataSource.setOptions({
    logging: true,
    logger: {
      logQuery: (sql, parameters) => void asked.push({ sql, parameters: Array.isArray(parameters) ? parameters : [] }),
      logQueryError: quiet,
      logQuerySlow: quiet,
      logSchemaBuild: quiet,
      logMigration: quiet,
      log: quiet,
    },
  });
  await dataSource.initialize();
  reading = new Database(dataSource);
  samples = await database.query(
    `SELECT f.action, f.action_version::text AS "actionVersion", f.subject_type AS "subjectType", f.subject_id AS "subjectId", f.model_id AS "modelId",
            f.model_version AS "modelVersion", encode(f.prompt_template_sha256, 'hex') AS "promptTemplateSha256",
            f.retrieval_snapshot_id AS "retrievalSnapshotId", f.policy_version AS "policyVersion", coalesce(f.reporting_period, '2026-Q1') AS "reportingPeriod",
            f.outcome, coalesce(f.reason, 'duplicate-subject') AS reason, 'completed' AS state, l.idem_key AS key,
            content_key(d.tenant_id, d.content_hash) AS "contentKey",
            coalesce(d.downstream_uuid4::text, '113056fb-1a9f-4af2-b493-e381d325b975') AS "downstreamKey", coalesce(f.external_ref, 're_1') AS "externalRef",
            coalesce(a.step_id, 'step-1') AS "stepId", coalesce(a.run_id, 'run-1-1') AS "runId", a.credential_id AS "credentialId",
            f.decision_id AS "decisionId", rfc3339(f.recorded_at - interval '45 days') AS "recordedFrom", rfc3339(f.recorded_at + interval '45 days') AS "recordedTo"
       FROM (SELECT * FROM recorded_decision WHERE tenant_id = $1 ORDER BY md5(decision_id::text) LIMIT $2) f
       JOIN ledger_entry l USING (tenant_id, ledger_entry_id)
       JOIN decision_record d ON d.tenant_id = f.tenant_id AND d.decision_id = f.decision_id
       JOIN LATERAL (SELECT * FROM attempt a WHERE a.decision_id = f.decision_id ORDER BY a.received_at LIMIT 1) a ON true`,
    [TENANT, rounds(10)],
  );
});
afterAll(async () => {
  await dataSource?.destroy();
  await database?.drop();
});

interface Node {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly Plans?: readonly Node[];
}

const nodesOf = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

/** The big tables that PostgreSQL would read from end to end to answer a question. */
async function readWhole(ask: () => Promise<unknown>): Promise<string[]> {
  asked = [];
  await ask();
  const statements = asked.filter(({ sql }) => /^\s*(WITH|SET LOCAL|SELECT (json|count|d\.|rfc))/.test(sql));
  expect(statements.length).toBeGreaterThan(0);
  return reading.transaction(TENANT, async (tx) => {
    const found: string[] = [];
    for (const { sql, parameters } of statements) {
      if (/^\s*SET LOCAL/.test(sql)) await tx.query(sql);
      else found.push(...wholeTables(await tx.query<Explained[]>(`EXPLAIN (FORMAT JSON) ${sql}`, parameters)));
    }
    return found;
  });
}

type Explained = Readonly<Record<'QUERY PLAN', readonly { Plan: Node }[]>>;

const wholeTables = (rows: readonly Explained[]): string[] =>
  rows
    .flatMap((row) => row['QUERY PLAN'].flatMap(({ Plan }) => nodesOf(Plan)))
    .filter((node) => node['Node Type'] === 'Seq Scan' && BIG.includes(node['Relation Name'] ?? ''))
    .map((node) => node['Relation Name'] ?? '');

const FILTERS = (): DecisionFilterName[] => Object.keys(samples[0] ?? {}) as DecisionFilterName[];
/** Each name alone, and with each other name: all of these pairs, or a part of them that is the same at every run. */
function pairs<T>(names: readonly T[]): [T, T][] {
  const random = seeded(PAIRS_SEED);
  return names.flatMap((a, i) =>
    names.slice(i).flatMap((b): [T, T][] => (IS_LONG || a === b || random() < PAIRS_SHARE ? [[a, b]] : [])),
  );
}
const only = (sample: Readonly<Partial<Record<string, string>>>, names: readonly string[]): AttemptFilters =>
  Object.fromEntries(names.map((name) => [name, sample[name]]));

/** Every pair of filters, each with the values of some decisions, whose question reads a table whole. */
async function guilty(
  names: readonly AttemptFilterName[],
  extra: Readonly<Partial<Record<string, string>>>,
  ask: (filters: AttemptFilters) => Promise<unknown>,
): Promise<string[]> {
  const found: string[] = [];
  for (const pair of pairs(names)) {
    for (const sample of samples) {
      const filters = only({ ...sample, ...extra }, [...new Set(pair)]);
      const tables = await readWhole(() => ask(filters));
      if (tables.length > 0) found.push(`${JSON.stringify(filters)}: ${tables.join(', ')}`);
    }
  }
  return found;
}

describe('no sequential scan of a big table', () => {
  test.each(['asc', 'desc'] as const)('for the first page of decisions, for any two filters, %s', async (order) => {
    const reader = new DecisionReader(reading);
    expect(await guilty(FILTERS(), {}, (filters) => reader.list(TENANT, filters, { ...PAGING, order }))).toEqual([]);
  });

  test('for the first page of the ledger, for any two filters', async () => {
    const reader = new EntryReader(reading);
    expect(await guilty(FILTERS(), {}, (filters) => reader.list(TENANT, filters, { ...PAGING, order: 'asc' }))).toEqual(
      [],
    );
  });

  test.each([
    ['asc', 'mismatch'],
    ['desc', 'replayed'],
  ] as const)(
    'for the first page of attempts, for any two filters, %s, of those that are %s',
    async (order, disposition) => {
      const reader = new AttemptReader(reading);
      const names = [...FILTERS(), 'disposition'] as const;
      expect(
        await guilty(names, { disposition }, (filters) => reader.list(TENANT, filters, { ...PAGING, order })),
      ).toEqual([]);
    },
  );

  test('for a count over a quarter', async () => {
    const quarter = { recordedFrom: '2026-07-01T00:00:00Z', recordedTo: '2026-10-01T00:00:00Z' };
    const [decisions, attempts] = [new DecisionReader(reading), new AttemptReader(reading)];
    expect(await readWhole(() => decisions.count(TENANT, quarter, ['action', 'outcome']))).toEqual([]);
    expect(await readWhole(() => attempts.count(TENANT, quarter, ['disposition']))).toEqual([]);
  });

  test('for any stretch of an export', async () => {
    const exported = new DecisionExport(reading);
    const rows = exported.rows(TENANT, {}, { order: 'asc', cursor: null });
    expect(
      await readWhole(async () => {
        for (let row = 0; row < 2_500; row += 1) await rows.next();
      }),
    ).toEqual([]);
  });
});
