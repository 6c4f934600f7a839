import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { createServer } from 'node:net';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { errorCode } from './embedded-error.js';

/** The account of the operating system that a process is to run under; absent: the one of this process. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

export interface Finished {
  readonly code: number | null;
  readonly output: string;
}

/** PostgreSQL shuts down in these steps: finish cleanly; drop everything (recovers at the next start); the last resort. */
const SHUTDOWN_STEPS = [
  { signal: 'SIGINT', patience_ms: 10_000 },
  { signal: 'SIGQUIT', patience_ms: 10_000 },
  { signal: 'SIGKILL', patience_ms: 10_000 },
] as const;

/**
 * The environment for PostgreSQL's own programs: ours without the variables by which libpq, the server and the C library
 * would be talked into other ports, options and locales.
 */
export function cleanEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(PG|LC_|LANG|TZ$)/.test(name));
  return { ...Object.fromEntries(kept), LC_ALL: 'C', TZ: 'UTC' };
}

/** Runs a program to its end; throws only when it could not be started at all. */
export async function run(program: string, args: readonly string[], account?: Account): Promise<Finished> {
  // The working directory is `/` because the account may have no way into ours.
  const child = spawn(program, args, {
    ...account,
    cwd: '/',
    env: cleanEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, output }));
  });
}

/**
 * Whether a process lives that this account could signal; a stranger's process that took over an old number is none of ours.
 * A zombie does not live: whoever should reap it may never do so (PID 1 of a container).
 */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return !/^\s[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 1));
  } catch {
    return true;
  }
}

async function commandLine(pid: number): Promise<readonly string[]> {
  if (process.platform === 'linux') return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  return (await run('ps', ['-ww', '-o', 'command=', '-p', String(pid)])).output.trim().split(' ');
}

/**
 * Whether a process is the server of the cluster in `clusterDir` (a real path). A number in an old postmaster.pid may by
 * now belong to any program. In doubt the answer is yes: to wait for a stranger is better than to start beside the server.
 */
export async function isPostmasterOf(pid: number, clusterDir: string): Promise<boolean> {
  if (!isAlive(pid)) return false;
  if (process.platform === 'win32') return true;
  const command = await commandLine(pid).catch(() => undefined);
  if (command === undefined) return isAlive(pid);
  const [program, dir] = [command[0] ?? '', command[command.indexOf('-D') + 1] ?? ''];
  if (basename(program) !== 'postgres' || !command.includes('-D')) return false;
  // A folder that was moved while its server ran shows under its old name, which then resolves to nothing.
  return realpath(dir).then(
    (real) => real === clusterDir,
    () => true,
  );
}

/** Stops a server and waits until its process is gone. `pgCtl` speaks for signals where the platform has none. */
export async function shutDown(pid: number, pgCtl: string): Promise<void> {
  for (const { signal, patience_ms } of SHUTDOWN_STEPS) {
    if (process.platform === 'win32') await run(pgCtl, ['kill', signal.slice(3), String(pid)]);
    else killQuietly(pid, signal);
    const end = performance.now() + patience_ms;
    while (performance.now() < end) {
      if (!isAlive(pid)) return;
      await sleep(10);
    }
  }
}

function killQuietly(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (errorCode(error) !== 'ESRCH') throw error;
  }
}

/** A TCP port of 127.0.0.1 that was free just now. Another program may take it before its user does. */
export async function freePort(): Promise<number> {
  const probe = createServer();
  return new Promise((resolve, reject) => {
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      const port = address !== null && typeof address === 'object' ? address.port : 0;
      probe.close(() => resolve(port));
    });
  });
}

/** Whether the account can pass through every folder up to `path` and read it (a file) or enter it (a folder). */
export async function canReach(path: string, account: Account, access: 'read' | 'enter'): Promise<boolean> {
  const test = `test ${access === 'read' ? '-r' : '-x'} "$1"`;
  return (await run('/bin/sh', ['-c', test, 'sh', path], account)).code === 0;
}
