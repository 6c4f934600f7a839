// Fills a database with decisions as the service would have left them. What they are like is said in README.md.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import pg from 'pg';
import { attemptsSql, boundKeysSql, firstCountSql, furtherSql } from './population/attempts.mjs';
import { HOURS, decisionsSql, fatesSql, functionsSql } from './population/fates.mjs';
import { inventorySql, refusalsSql, writes } from './population/writes.mjs';

const ATTEMPTS_A_DECISION = 2.5;
/** So many decisions are written in one transaction. */
const STRETCH = 50_000;
export const TENANTS = ['acme', 'birch', 'cedar', 'dogwood', 'elm', 'fir', 'ginkgo', 'hazel'];
const TENANT = /^[a-z0-9](?:[a-z0-9-]{0,18}[a-z0-9])?$/;

/** The beginning of this day in UTC: two runs on one day give the same population. */
const today = () => `${new Date().toISOString().slice(0, 10)}T00:00:00Z`;

/**
 * Writes a population into a migrated database that has no decisions of these tenants, and analyses it. The same seed,
 * size, tenants and end give the same rows. The first tenant has every other decision, the rest share what is left.
 *
 * @param client a connected client of `pg` for a superuser, or a role with BYPASSRLS: rows of all tenants go in together
 * @param until when it ends, RFC 3339; it begins two years earlier
 * @param say is told how far it is
 * @returns how many decisions and attempts it has
 */
export async function populate(
  client,
  { decisions = 1_000_000, seed = 1, tenants = TENANTS, until = today(), say = () => undefined } = {},
) {
  for (const number of [decisions, seed])
    if (!Number.isSafeInteger(number) || number < 1) throw new RangeError(`${number} is no whole number above 0`);
  if (tenants.length === 0 || !tenants.every((tenant) => TENANT.test(tenant)))
    throw new RangeError('A tenant is a slug');
  const end = new Date(until).toISOString();
  await refuseUnlessAllowed(client);
  await client.query(`SET synchronous_commit = off; SET work_mem = '256MB'; ${functionsSql(seed)}`);
  try {
    await client.query(inventorySql(tenants, end, HOURS));
    await client.query(fatesSql({ decisions, tenants, until: end }));
    let attempts = 0;
    for (let from = 1; from <= decisions; from += STRETCH) {
      const to = Math.min(decisions, from + STRETCH - 1);
      attempts += await writeStretch(client, { from, to, attempts, tenants, until: end });
      say(`${to} decisions, ${attempts} attempts`);
    }
    await client.query('ANALYZE');
    return { decisions, attempts };
  } finally {
    await client
      .query('DROP TABLE IF EXISTS pg_temp.fate; RESET synchronous_commit; RESET work_mem')
      .catch(() => undefined);
  }
}

/** Without that right, row-level security would refuse the rows, or worse, hide what is there. */
async function refuseUnlessAllowed(client) {
  const { rows } = await client.query(
    'SELECT rolsuper OR rolbypassrls AS may FROM pg_roles WHERE rolname = current_user',
  );
  if (!rows[0].may) throw new Error('A population is written by a superuser, or a role with BYPASSRLS');
}

/** @returns how many attempts the stretch has: so many that all together are what was promised */
async function writeStretch(client, { from, to, attempts, tenants, until }) {
  await client.query('BEGIN');
  try {
    await client.query(decisionsSql(from, to));
    const { decision_record: decisionRecord, ...others } = writes(until);
    await client.query(decisionRecord);
    await client.query(refusalsSql);
    for (const sql of Object.values(others)) await client.query(sql);
    const first = (await client.query(firstCountSql)).rows[0].count;
    const count = Math.max(0, Math.round(ATTEMPTS_A_DECISION * to) - attempts - first);
    await client.query(furtherSql({ from, to, count, numberedFrom: attempts, until }));
    await client.query(boundKeysSql(until));
    const written = (await client.query(attemptsSql)).rowCount;
    await client.query('SELECT copy_recorded($1, $2)', [tenants, STRETCH]);
    await client.query('COMMIT');
    return written;
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  }
}

const OPERATOR = fileURLToPath(new URL('../dist/apps/operator/src/main.js', import.meta.url));
const USAGE = 'Usage: node bench/population.mjs [--decisions N] [--seed N] <databaseUrl>\n';

/** Migrates, makes the tenants, fills, and prints the tokens with which one reads. */
async function main() {
  const options = { decisions: { type: 'string', default: '1000000' }, seed: { type: 'string', default: '1' } };
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const [databaseUrl] = positionals;
  if (databaseUrl === undefined) throw new Error(USAGE);
  const operate = async (...command) =>
    (
      await promisify(execFile)(process.execPath, [OPERATOR, ...command], {
        env: { ...process.env, DATABASE_URL: databaseUrl },
      })
    ).stdout;
  await operate('migrate');
  const tokens = {};
  for (const tenant of TENANTS) tokens[tenant] = JSON.parse(await operate('create-tenant', tenant));
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const say = (text) => void process.stderr.write(`${text}\n`);
    const made = await populate(client, { decisions: Number(values.decisions), seed: Number(values.seed), say });
    process.stdout.write(`${JSON.stringify({ ...made, tokens }, null, 2)}\n`);
  } finally {
    await client.end();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main().catch((error) => {
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  });
}
