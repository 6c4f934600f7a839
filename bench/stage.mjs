import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { startEmbeddedServer } from '../dist/libs/database/src/embedded-server.js';
import { JobProcess } from './jobs.mjs';
import { actions } from './requests.mjs';

const inRoot = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const API = inRoot('dist/apps/api/src/main.js');
const OPERATOR = inRoot('dist/apps/operator/src/main.js');
const TENANT = 'bench';
const START_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 10_000;

const run = promisify(execFile);

/** What is running, in the order in which it began; it ends in the opposite order. */
export class Stage {
  #endings = [];
  #ended;

  /** Everything ends, whatever fails on the way. Any number of calls. */
  end() {
    this.#ended ??= this.#endAll();
    return this.#ended;
  }

  async #endAll() {
    const failures = [];
    for (let ending = this.#endings.pop(); ending !== undefined; ending = this.#endings.pop())
      await Promise.resolve(ending()).catch((error) => failures.push(error));
    if (failures.length > 0) throw new AggregateError(failures, 'Not everything could be cleaned up');
  }

  #atEnd(ending) {
    if (this.#ended !== undefined) throw new Error('The bench is ending');
    this.#endings.push(ending);
  }

  /** A PostgreSQL with its default, durable settings, the API on it, the system that it calls, and the two processes that send. */
  async begin(poolSize, more = {}) {
    const folder = mkdtempSync(join(tmpdir(), 'decision-ledger-bench-'));
    this.#atEnd(async () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
    const server = await startEmbeddedServer({ dataDir: join(folder, 'data') });
    this.#atEnd(() => server.stop());
    const url = await freshDatabase(server.url);
    const provider = await this.#process('provider.mjs').run('open');
    const settings = { DATABASE_POOL_SIZE: String(poolSize), DISPATCH_ALLOWED_HOSTS: provider.host, ...more };
    const api = await this.#startApi(url, settings, join(folder, 'api.log'));
    const { stdout } = await run(process.execPath, [OPERATOR, 'create-tenant', TENANT], { env: env(url) });
    const tokens = JSON.parse(stdout);
    const rules = await putActions(api.url, tokens.admin, actions(`http://${provider.host}/refunds`));
    const [http, floor] = [this.#process('http-load.mjs'), this.#process('floor-load.mjs')];
    await floor.run('open', { databaseUrl: url, poolSize });
    const caller = { tenant: TENANT, credentialId: tokens.orchestrator.split('_')[1], role: 'orchestrator' };
    return {
      service: { url: api.url, host: new URL(api.url).host, token: tokens.orchestrator },
      residentMegabytes: () => residentMegabytes(api.pid),
      server: await serverFacts(url),
      caller,
      actions: rules,
      http,
      floor,
    };
  }

  #process(file) {
    const child = new JobProcess(fileURLToPath(new URL(file, import.meta.url)));
    this.#atEnd(() => child.stop());
    return child;
  }

  /** The API as in production, the worker in it: its own process, every other setting at its default, its log in a file. */
  async #startApi(databaseUrl, settings, logFile) {
    const log = openSync(logFile, 'w');
    const child = spawn(process.execPath, [API], {
      env: { ...env(databaseUrl), PORT: '0', ...settings },
      stdio: ['ignore', log, log],
    });
    this.#atEnd(() => stop(child));
    const deadline = performance.now() + START_TIMEOUT_MS;
    while (performance.now() < deadline && child.exitCode === null) {
      const [, url] = /serves (http:\S+)/.exec(readFileSync(logFile, 'utf8')) ?? [];
      if (url !== undefined) return { url, pid: child.pid };
      await sleep(20);
    }
    throw new Error(`The service did not start: ${readFileSync(logFile, 'utf8')}`);
  }
}

const env = (databaseUrl) => ({ PATH: process.env.PATH, HOME: process.env.HOME, DATABASE_URL: databaseUrl });

async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  await Promise.race([gone, sleep(STOP_TIMEOUT_MS, undefined, { ref: false })]);
  if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
  await gone;
}

async function freshDatabase(serverUrl) {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    await client.query('CREATE DATABASE bench');
  } finally {
    await client.end();
  }
  const url = new URL(serverUrl);
  url.pathname = 'bench';
  return url.href;
}

async function putActions(url, token, actions) {
  const put = async ([action, rules]) => {
    const response = await fetch(`${url}/v1/actions/${action}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(rules),
    });
    if (response.status !== 201) throw new Error(`PUT ${action}: ${response.status} ${await response.text()}`);
    return [action, await response.json()];
  };
  return Object.fromEntries(await Promise.all(Object.entries(actions).map(put)));
}

/** The version, and the two settings without which a rate of writes says nothing. */
async function serverFacts(url) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query(
      `SELECT current_setting('server_version') AS version, current_setting('fsync') AS fsync,
              current_setting('synchronous_commit') AS "synchronousCommit"`,
    );
    return rows[0];
  } finally {
    await client.end();
  }
}

/** Resident set of a process in MiB. */
async function residentMegabytes(pid) {
  const kibibytes =
    process.platform === 'linux'
      ? /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
      : (await run('ps', ['-o', 'rss=', '-p', String(pid)])).stdout;
  return Math.round(Number(kibibytes) / 1024);
}
