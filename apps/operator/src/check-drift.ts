import 'reflect-metadata';
import pg from 'pg';
import { DataSource } from 'typeorm';
import { Credential, Tenant } from '#access';
import { ActionVersion } from '#actions';
import { migrate } from '#database';
import { Attempt, ContentHold, DecisionRecord } from '#decisions';
import { Dispatch, Effect, Hold } from '#effects';
import { BoundKey, EndedLease, IdempotencyRecord } from '#idempotency';
import { AbandonedDecision, AccessEnd, AccessRecord, LedgerEntry, RecordedDecision, UncopiedEntry } from '#ledger';
import { LogKey, LogLeaf, LogTile, LogTree, UnsealedEntry } from '#log';

/**
 * Compares the entities with the schema that the migrations make, on a fresh database of the server whose
 * URL is the argument. Says what TypeORM would have to change, and fails if that is anything.
 */
const SCRATCH = `drift_${process.pid}`;
const ENTITIES = [
  Tenant,
  Credential,
  ActionVersion,
  IdempotencyRecord,
  BoundKey,
  EndedLease,
  DecisionRecord,
  Attempt,
  Effect,
  Hold,
  ContentHold,
  Dispatch,
  LedgerEntry,
  AbandonedDecision,
  RecordedDecision,
  UncopiedEntry,
  AccessRecord,
  AccessEnd,
  UnsealedEntry,
  LogLeaf,
  LogTile,
  LogTree,
  LogKey,
];

async function drift(serverUrl: string): Promise<readonly string[]> {
  const server = new pg.Client({ connectionString: serverUrl });
  await server.connect();
  await server.query(`CREATE DATABASE ${SCRATCH}`);
  try {
    const url = new URL(serverUrl);
    url.pathname = SCRATCH;
    await migrate(url.href);
    const dataSource = await new DataSource({ type: 'postgres', url: url.href, entities: ENTITIES }).initialize();
    await tellOfGenerated(dataSource);
    const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
    await dataSource.destroy();
    return upQueries.map(({ query }) => query);
  } finally {
    await server.query(`DROP DATABASE ${SCRATCH} WITH (FORCE)`);
    await server.end();
  }
}

/**
 * TypeORM looks up what a generated column is made of in a table of its own, which only its own synchronising fills. What the
 * database makes the column of is compared by a test of the house.
 */
async function tellOfGenerated(dataSource: DataSource): Promise<void> {
  await dataSource.query(
    'CREATE TABLE typeorm_metadata ("type" text, "database" text, "schema" text, "table" text, "name" text, "value" text)',
  );
  const generated = dataSource.entityMetadatas.flatMap(({ columns }) =>
    columns.filter(({ generatedType }) => generatedType !== undefined),
  );
  for (const { entityMetadata, databaseName, asExpression } of generated) {
    await dataSource.query(
      `INSERT INTO typeorm_metadata VALUES ('GENERATED_COLUMN', current_database(), 'public', $1, $2, $3)`,
      [entityMetadata.tableName, databaseName, asExpression],
    );
  }
}

const queries = await drift(process.argv[2] ?? '');
for (const query of queries) process.stderr.write(`The entities want: ${query}\n`);
process.exitCode = queries.length === 0 ? 0 : 1;
