import { createHash } from 'node:crypto';
import pg from 'pg';
import { freshDatabase, onServer, urlOf, type TestDatabase } from './database.js';
import { migrationFiles } from './schema.js';
import { createTenant, operator, type Tokens } from './service.js';

/** Only one process makes the template; the others wait for it. */
const LOCK = 7_231_904;
const TENANT = 'acme';

/**
 * A fresh database with every migration and the tenant `acme`. To migrate, and to make a tenant by the operator's command
 * line, takes seconds, and every story begins with it: it is done once on a server, and then copied.
 */
export async function stagedDatabase(): Promise<{ database: TestDatabase; tokens: Tokens }> {
  const hash = createHash('sha256');
  for (const { file, sql } of migrationFiles()) hash.update(`${file}\n${sql}`);
  const template = `template_${hash.digest('hex').slice(0, 16)}`;
  const tokens = await onServer((server) => tokensOf(server, template));
  const database = await freshDatabase(template);
  // A log is known by its id, wherever it is restored; this one is another.
  await database.query('UPDATE log_tree SET log_id = gen_random_uuid()');
  return { database, tokens };
}

/** What the template's tenant is called with: kept as the comment of the database, and there once the template is whole. */
async function tokensOf(server: pg.Client, template: string): Promise<Tokens> {
  await server.query('SELECT pg_advisory_lock($1)', [LOCK]);
  try {
    const told = `SELECT shobj_description(oid, 'pg_database') AS tokens FROM pg_database WHERE datname = $1`;
    const { rows } = await server.query<{ tokens: string | null }>(told, [template]);
    if (typeof rows[0]?.tokens === 'string') return JSON.parse(rows[0].tokens);
    await server.query(`DROP DATABASE IF EXISTS ${template} WITH (FORCE)`);
    await server.query(`CREATE DATABASE ${template}`);
    const url = urlOf(template);
    await operator(url, 'migrate');
    const tokens = await createTenant(url, TENANT);
    await server.query(`COMMENT ON DATABASE ${template} IS '${JSON.stringify(tokens)}'`);
    return tokens;
  } finally {
    await server.query('SELECT pg_advisory_unlock($1)', [LOCK]);
  }
}
