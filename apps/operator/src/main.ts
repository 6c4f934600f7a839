import 'reflect-metadata';
import { Authenticator, Credentials } from '#access';
import {
  DatabaseError,
  EmbeddedServerError,
  migrate,
  openDatabase,
  readSettings,
  SettingError,
  type Settings,
} from '#database';
import { TENANT_SLUG } from '#key';
import { Problem } from '#problem';

const USAGE = `Usage: npm run operator -- <command>

  migrate                 bring the schema up to date, as the owner (DATABASE_OWNER_URL, else DATABASE_URL)
  create                  make an operator's credential and print its token, this once
  create-tenant <slug>    make a tenant and print the tokens of its first credentials, this once
`;

/** A command that was not understood. */
class UsageError extends Error {}

async function run([command, ...rest]: readonly string[], settings: Settings): Promise<string> {
  switch (command) {
    case 'migrate':
      return migrateSchema(settings);
    case 'create':
      return withCredentials(settings, async (credentials) => `${await credentials.createOperator('operator')}\n`);
    case 'create-tenant': {
      const [tenant] = rest;
      if (tenant === undefined || !TENANT_SLUG.test(tenant))
        throw new UsageError('create-tenant needs a slug: 1–20 lower-case letters, digits and inner hyphens');
      return withCredentials(
        settings,
        async (credentials) => `${JSON.stringify(await credentials.createTenant(tenant), null, 2)}\n`,
      );
    }
    default:
      throw new UsageError(command === undefined ? 'a command is needed' : `there is no command "${command}"`);
  }
}

async function migrateSchema(settings: Settings): Promise<string> {
  const url = settings.databaseOwnerUrl ?? settings.databaseUrl;
  if (url === null)
    throw new SettingError(
      'DATABASE_OWNER_URL or DATABASE_URL must say which database to migrate; the embedded one is migrated at its start',
    );
  const ran = await migrate(url);
  return ran.length === 0 ? 'The schema is up to date\n' : `${ran.map((name) => `Migrated ${name}`).join('\n')}\n`;
}

async function withCredentials(
  settings: Settings,
  work: (credentials: Credentials) => Promise<string>,
): Promise<string> {
  const opened = await openDatabase(settings, (line) => process.stderr.write(`${line}\n`));
  try {
    return await work(new Credentials(opened.database, new Authenticator(opened.database, null)));
  } finally {
    await opened.close();
  }
}

try {
  process.stdout.write(await run(process.argv.slice(2), readSettings(process.env)));
} catch (error) {
  const isExpected =
    error instanceof UsageError ||
    error instanceof SettingError ||
    error instanceof DatabaseError ||
    error instanceof EmbeddedServerError ||
    error instanceof Problem;
  process.stderr.write(
    `decision-ledger: ${isExpected ? error.message : String(error instanceof Error ? error.stack : error)}\n${error instanceof UsageError ? `\n${USAGE}` : ''}`,
  );
  process.exitCode = 1;
}
