import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PROJECT_ROOT } from '#database';
import { Client } from './client.js';

/** Where services on a database of the test server keep their key, so that all of one database have the same. */
export const TEST_DATA_DIR = join(tmpdir(), 'decision-ledger-test-data');

const START_TIMEOUT_MS = 30_000;
const MAIN = join(PROJECT_ROOT, 'dist/apps/api/src/main.js');
const OPERATOR = join(PROJECT_ROOT, 'dist/apps/operator/src/main.js');

export type Tokens = Record<'admin' | 'orchestrator' | 'auditor', string>;

/** The built service in an operating-system process of its own. */
export interface Service {
  readonly url: string;
  readonly pid: number;
  /** Everything that it has written to standard output and standard error. */
  output(): string;
  /** SIGTERM, and what it exits with. */
  stop(): Promise<number | null>;
  /** `kill -9`. */
  kill(): Promise<void>;
  signal(signal: NodeJS.Signals): void;
}

/** Starts the service on a free port, or, with WORKER=only, on none. `env` is added to a small environment of its own. */
export async function startService(env: Readonly<Record<string, string>>, main = MAIN): Promise<Service> {
  const child = spawn(process.execPath, ['--enable-source-maps', main], {
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      DATA_DIR: TEST_DATA_DIR,
      PORT: '0',
      LOG_LEVEL: 'warn',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const text: string[] = [];
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => text.push(chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => text.push(chunk));
  const output = (): string => text.join('');
  const url = await urlWhenServing(child, output);
  return {
    url,
    pid: child.pid ?? 0,
    output,
    async stop() {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGTERM');
        await once(child, 'exit');
      }
      return child.exitCode;
    },
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
    signal: (signal) => void child.kill(signal),
  };
}

async function urlWhenServing(child: ChildProcess, output: () => string): Promise<string> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < deadline) {
    const [, url] = /serves (http:\S+)/.exec(output()) ?? [];
    if (url !== undefined) return url;
    if (output().includes('the worker runs')) return '';
    if (child.exitCode !== null) break;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  child.kill('SIGKILL');
  throw new Error(`The service did not start: ${output()}`);
}

/** Runs the operator's command line and gives back what it printed. */
export async function operator(databaseUrl: string, ...command: readonly string[]): Promise<string> {
  const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], DATABASE_URL: databaseUrl };
  const { stdout } = await promisify(execFile)(process.execPath, [OPERATOR, ...command], { env });
  return stdout.trim();
}

/** Makes a tenant by the operator's command line and gives a client for each of its roles. */
export async function createTenant(databaseUrl: string, tenant: string): Promise<Tokens> {
  const tokens: Tokens = JSON.parse(await operator(databaseUrl, 'create-tenant', tenant));
  return tokens;
}

export function clientsOf(url: string, tokens: Tokens): Record<keyof Tokens, Client> {
  return {
    admin: new Client(url, tokens.admin),
    orchestrator: new Client(url, tokens.orchestrator),
    auditor: new Client(url, tokens.auditor),
  };
}
