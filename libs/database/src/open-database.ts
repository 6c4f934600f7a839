import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { DataSource } from 'typeorm';
import { Database } from './database.js';
import { startEmbeddedServer, type EmbeddedServer } from './embedded-server.js';
import { classifyFailure } from './failure.js';
import { migrate, missingMigrations } from './migrations.js';
import type { Settings } from './settings.js';

export const SERVICE_ROLE = 'decision_ledger_service';
const OWNER_ROLE = 'decision_ledger_owner';
const EMBEDDED_DATABASE = 'decision_ledger';

/** No statement of the service is meant to take this long; one that does is cut off rather than holding a connection. */
const STATEMENT_TIMEOUT_MS = 30_000;
/** A handler that forgets its transaction must not hold its key for ever. */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 15_000;
const CONNECT_TIMEOUT_MS = 5_000;

/** A database that cannot be opened. The message is one line for an operator. */
export class DatabaseError extends Error {}

export interface OpenDatabase {
  readonly database: Database;
  /** Whether the service runs its own server, and so may set up a first tenant by itself. */
  readonly embedded: boolean;
  /** Ends the connections, then the embedded server. */
  close(): Promise<void>;
}

/** A data source in which every connection works as the service's role, whatever login it came with. */
export function serviceDataSource(url: string, poolSize: number): DataSource {
  const login = decodeURIComponent(new URL(url).username);
  return new DataSource({
    type: 'postgres',
    url,
    applicationName: 'decision-ledger',
    poolSize,
    connectTimeoutMS: CONNECT_TIMEOUT_MS,
    // An idle connection that breaks, as when the server restarts, is dropped by the pool; the next request says 503 if need be.
    poolErrorHandler: () => undefined,
    installExtensions: false,
    extra: {
      statement_timeout: STATEMENT_TIMEOUT_MS,
      idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
      ...(login === SERVICE_ROLE ? {} : { options: `-c role=${SERVICE_ROLE}` }),
    },
  });
}

/**
 * Opens the database that the settings name: the server of DATABASE_URL, or a real PostgreSQL of our own in DATA_DIR,
 * which is set up and migrated by itself.
 *
 * @throws DatabaseError, EmbeddedServerError with one line that says what to do.
 */
export async function openDatabase(settings: Settings, log: (line: string) => void): Promise<OpenDatabase> {
  return settings.databaseUrl === null
    ? openEmbedded(settings, log)
    : openExternal(settings.databaseUrl, settings, log);
}

async function openEmbedded(settings: Settings, log: (line: string) => void): Promise<OpenDatabase> {
  const server = await startEmbeddedServer({ dataDir: settings.dataDir, log });
  try {
    const { ownerUrl, serviceUrl } = await prepareEmbedded(server);
    await migrate(ownerUrl);
    const dataSource = await serviceDataSource(serviceUrl, settings.poolSize).initialize();
    const close = async (): Promise<void> => {
      await dataSource.destroy();
      await server.stop();
    };
    return { database: new Database(dataSource), embedded: true, close };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/** Makes the database and its two roles. Their passwords are new at every start and are kept nowhere. */
async function prepareEmbedded(server: EmbeddedServer): Promise<{ ownerUrl: string; serviceUrl: string }> {
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  try {
    const ownerUrl = await prepareLogin(client, OWNER_ROLE, server.url);
    const serviceUrl = await prepareLogin(client, SERVICE_ROLE, server.url);
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [EMBEDDED_DATABASE]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${EMBEDDED_DATABASE} OWNER ${OWNER_ROLE}`);
    return { ownerUrl, serviceUrl };
  } finally {
    await client.end();
  }
}

async function prepareLogin(client: pg.Client, role: string, serverUrl: string): Promise<string> {
  const password = randomBytes(32).toString('hex');
  const { rowCount } = await client.query('SELECT FROM pg_roles WHERE rolname = $1', [role]);
  await client.query(`${rowCount === 0 ? 'CREATE' : 'ALTER'} ROLE ${role} LOGIN PASSWORD '${password}'`);
  const url = new URL(serverUrl);
  url.username = role;
  url.password = password;
  url.pathname = EMBEDDED_DATABASE;
  return url.href;
}

async function openExternal(url: string, settings: Settings, log: (line: string) => void): Promise<OpenDatabase> {
  await migrateIfAllowed(url, settings.databaseOwnerUrl, log);
  const dataSource = serviceDataSource(url, settings.poolSize);
  try {
    await dataSource.initialize();
    const missing = await missingMigrations(dataSource);
    if (missing.length > 0) {
      throw new DatabaseError(
        `The schema lacks ${missing.length} migrations: run "npm run operator -- migrate" as the owner (docs/operating.md)`,
      );
    }
  } catch (error) {
    if (dataSource.isInitialized) await dataSource.destroy();
    throw readable(error, url);
  }
  return { database: new Database(dataSource), embedded: false, close: () => dataSource.destroy() };
}

/**
 * Migrates when the login at hand may do so: DATABASE_OWNER_URL, or a DATABASE_URL whose role owns the database. A login
 * as it should be in production may not, and the owner runs the migration as a job of its own.
 */
async function migrateIfAllowed(url: string, ownerUrl: string | null, log: (line: string) => void): Promise<void> {
  const client = new pg.Client({ connectionString: ownerUrl ?? url, connectionTimeoutMillis: CONNECT_TIMEOUT_MS });
  try {
    await client.connect();
    const { rows } = await client.query<{ owner: boolean }>(
      `SELECT pg_has_role(d.datdba, 'USAGE') AS owner FROM pg_database d WHERE d.datname = current_database()`,
    );
    if (rows[0]?.owner !== true) return;
    const ran = await migrate(ownerUrl ?? url);
    if (ran.length > 0) log(`Migrated the schema: ${ran.join(', ')}`);
  } catch (error) {
    throw readable(error, ownerUrl ?? url);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** One line that says which server, and never with which password. */
function readable(error: unknown, url: string): Error {
  if (error instanceof DatabaseError) return error;
  const { host, pathname, username } = new URL(url);
  const why = error instanceof AggregateError ? String(error.errors[0]) : String(error);
  const what = classifyFailure(error) === 'unavailable' ? 'cannot be reached' : 'cannot be used';
  return new DatabaseError(`The database ${username}@${host}${pathname} ${what}: ${why.replace(/^\w*error: /i, '')}`);
}
