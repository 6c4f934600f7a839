import { spawn, type ChildProcess } from 'node:child_process';
import { link, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import type { Cluster } from './embedded-cluster.js';
import { EmbeddedServerError, errorCode } from './embedded-error.js';
import { cleanEnvironment, isAlive, isPostmasterOf, shutDown } from './embedded-process.js';

/** What `postmaster.pid` says of a server that lives. Without a port it has only just begun to start. */
export interface Running {
  readonly pid: number;
  readonly port: number | undefined;
}

/** How a server ended. */
export interface Ended {
  /** It gave up by itself; otherwise somebody stopped or killed it. */
  readonly failed: boolean;
  /** What it wrote to its log about that. */
  readonly complaint: string;
}

/** The process of a server: our child, or one that a service which is gone left running. */
export interface Server {
  readonly pid: number;
  readonly ended: Promise<Ended>;
  hasEnded(): boolean;
  /** Lets this process end although the server runs on. */
  release(): void;
}

const LOG_LIMIT_BYTES = 16 * 1024 * 1024;
const ADOPTED_POLL_MS = 200;

function serverSettings(port: number, extra: Readonly<Record<string, string>>): Record<string, string> {
  return {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    max_connections: '100',
    timezone: 'UTC',
    log_timezone: 'UTC',
    lc_messages: 'C',
    logging_collector: 'off',
    log_destination: 'stderr',
    fsync: 'on',
    synchronous_commit: 'on',
    // A plan that was made while a table was empty may be a bad one; it is made anew when the table has been analysed.
    autovacuum_naptime: '5s',
    full_page_writes: 'on',
    ...extra,
  };
}

function serverArguments(cluster: Cluster, port: number, extra: Readonly<Record<string, string>>): readonly string[] {
  const settings = Object.entries(serverSettings(port, extra)).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  return ['-D', cluster.dir, ...settings];
}

/**
 * Starts the server in a session of its own: a Ctrl-C, or a signal to our process group, must not reach it before the
 * service has finished its own work. It logs to a file, so that it outlives us without a broken pipe.
 */
export async function launch(cluster: Cluster, port: number, extra: Readonly<Record<string, string>>): Promise<Server> {
  const size_bytes = await stat(cluster.logFile).then(
    (found) => found.size,
    () => 0,
  );
  if (size_bytes > LOG_LIMIT_BYTES) await rename(cluster.logFile, `${cluster.logFile}.1`);
  const log = await open(cluster.logFile, 'a', 0o600);
  try {
    const offset = (await log.stat()).size;
    const child = spawn(cluster.binaries.postgres, serverArguments(cluster, port, extra), {
      ...cluster.account,
      cwd: '/',
      detached: true,
      env: cleanEnvironment(),
      stdio: ['ignore', log.fd, log.fd],
    });
    const failed = await new Promise<Error | undefined>((resolve) => {
      child.once('spawn', () => resolve(undefined));
      child.once('error', resolve);
    });
    if (failed || child.pid === undefined) {
      throw new EmbeddedServerError(`PostgreSQL could not be started: ${failed?.message ?? 'no process'}`);
    }
    return watch(child, child.pid, cluster.logFile, offset);
  } finally {
    await log.close();
  }
}

function watch(child: ChildProcess, pid: number, logFile: string, offset: number): Server {
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  const exited = new Promise<void>((resolve) => {
    if (hasEnded()) resolve();
    child.once('exit', () => resolve());
  });
  const ended = exited.then(async () => {
    const failed = child.exitCode !== null && child.exitCode !== 0;
    const complaint = failed
      ? await complaints(logFile, offset, pid)
      : `it was stopped (${child.signalCode ?? 'exit 0'})`;
    return { failed, complaint };
  });
  return { pid, ended, hasEnded, release: () => child.unref() };
}

/** Another process's child cannot be waited for, only looked at. */
export function adopt(pid: number): Server {
  const hasEnded = (): boolean => !isAlive(pid);
  const watchFor = async (): Promise<Ended> => {
    while (!hasEnded()) await sleep(ADOPTED_POLL_MS, undefined, { ref: false });
    return { failed: false, complaint: '' };
  };
  return { pid, ended: watchFor(), hasEnded, release: () => undefined };
}

/** Whether the server runs with the programs and settings that we would give it. */
export async function runsAsWanted(
  cluster: Cluster,
  port: number,
  extra: Readonly<Record<string, string>>,
): Promise<boolean> {
  // PostgreSQL writes its command line there, each argument in double quotes.
  const written = (await readFile(join(cluster.dir, 'postmaster.opts'), 'utf8').catch(() => '')).trim();
  const quoted = serverArguments(cluster, port, extra).map((argument) => ` "${argument}"`);
  return written === cluster.binaries.postgres + quoted.join('');
}

/**
 * Stops a server, after leaving word that it will: as it goes down it lets go of the ownership lock an instant before its
 * last connections end, and whoever gets the lock in that instant owns nothing.
 */
export async function retire(cluster: Cluster, pid: number): Promise<void> {
  const running = await lockFileLines(lockFile(cluster));
  // A disk that is full must not keep us from stopping; the word then goes unsaid.
  if (running[0] === String(pid)) await writeFile(retiredFile(cluster), identity(running)).catch(() => undefined);
  await shutDown(pid, cluster.binaries.pgCtl);
}

export async function isRetired(cluster: Cluster, pid: number): Promise<boolean> {
  const running = await lockFileLines(lockFile(cluster));
  const word = await readFile(retiredFile(cluster), 'utf8').catch(() => '');
  return running[0] !== String(pid) || word === identity(running);
}

const lockFile = (cluster: Cluster): string => join(cluster.dir, 'postmaster.pid');
const retiredFile = (cluster: Cluster): string => join(cluster.dataDir, 'postgres-retired');

/** The process and the second in which it was started: a number alone may come again. */
const identity = (lines: readonly string[]): string => `${lines[0]} ${lines[2]}\n`;

/** The lines by which a server that gave up said why; another server may have written to the same file meanwhile. */
async function complaints(logFile: string, offset: number, pid: number): Promise<string> {
  const written = (await readFile(logFile).catch(() => Buffer.alloc(0))).subarray(offset).toString();
  const lines = written.split('\n').filter((line) => line !== '');
  const fatal = lines.filter(
    (line) => /\b(FATAL|PANIC|DETAIL):/.test(line) && !line.includes('the database system is '),
  );
  const own = fatal.filter((line) => line.includes(`[${pid}]`));
  const chosen = [own, fatal, lines].find((some) => some.length > 0) ?? [];
  return chosen
    .slice(-2)
    .map((line) => line.replace(/^.*?\b(FATAL|PANIC|DETAIL|LOG): +/, ''))
    .join('; ');
}

/** The server of a cluster, if one lives. */
export async function findRunning(cluster: Cluster): Promise<Running | undefined> {
  const lines = await lockFileLines(lockFile(cluster));
  const pid = await livingPid(cluster, lines);
  return pid === undefined ? undefined : { pid, port: Number(lines[3]) || undefined };
}

async function livingPid(cluster: Cluster, lines: readonly string[]): Promise<number | undefined> {
  // PostgreSQL in single-user mode, as for a repair, shows as a negative number.
  const pid = Math.abs(Number.parseInt(lines[0] ?? '', 10)) || undefined;
  return pid !== undefined && (await isPostmasterOf(pid, cluster.dir)) ? pid : undefined;
}

async function lockFileLines(path: string): Promise<readonly string[]> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return '';
    throw error;
  });
  return text.split('\n');
}

/**
 * Removes a `postmaster.pid` that PostgreSQL itself will not: its number now belongs to another program, or it is empty.
 * The file is moved first and read again, so that the new file of a server that starts at this instant is put back.
 */
export async function removeStaleLockFile(cluster: Cluster): Promise<void> {
  const path = lockFile(cluster);
  const aside = `${path}.stale-${process.pid}`;
  if (await findRunning(cluster)) return;
  try {
    await rename(path, aside);
    if ((await livingPid(cluster, await lockFileLines(aside))) !== undefined) await link(aside, path);
  } catch (error) {
    if (!['ENOENT', 'EEXIST'].includes(errorCode(error) ?? '')) throw error;
  } finally {
    await rm(aside, { force: true });
  }
}
