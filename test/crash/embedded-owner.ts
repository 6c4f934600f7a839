import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import pg from 'pg';

interface Event {
  readonly url?: string;
  readonly port?: number;
  readonly refused?: string;
  readonly name?: string;
  readonly isOneLine?: boolean;
  readonly log?: string;
  readonly failure?: string;
  readonly interrupted?: boolean;
  readonly stopped?: boolean;
}

const SCRIPT = fileURLToPath(new URL('embedded-service.mjs', import.meta.url));

/** An operating system process that owns an embedded server, as a service does. */
export class Owner {
  static readonly all = new Set<Owner>();

  readonly events: Event[] = [];
  private readonly closed: Promise<void>;

  private constructor(private readonly child: ChildProcess) {
    Owner.all.add(this);
    this.closed = new Promise((resolve) => child.once('close', () => resolve()));
    if (!child.stdout) throw new Error('The process has no output');
    createInterface({ input: child.stdout }).on('line', (line) => this.events.push(JSON.parse(line) as Event));
  }

  static start(
    dataDir: string,
    options: { uid?: number; settings?: Record<string, string>; env?: Record<string, string> } = {},
  ): Owner {
    const { uid, settings = {}, env = {} } = options;
    const as = uid === undefined ? {} : { uid, gid: uid };
    // A process group of its own, so that a test can signal it as a terminal does.
    return new Owner(
      spawn(process.execPath, [SCRIPT, dataDir, JSON.stringify(settings)], {
        ...as,
        cwd: '/',
        detached: true,
        env: { ...process.env, ...env },
        stdio: ['ignore', 'pipe', 'inherit'],
      }),
    );
  }

  get pid(): number {
    if (this.child.pid === undefined) throw new Error('The process did not start');
    return this.child.pid;
  }

  async saw(what: (event: Event) => boolean): Promise<Event> {
    return eventually(() => this.events.find(what), `${JSON.stringify(this.events)} lacks ${what}`);
  }

  /** The answer to the start: a URL or a refusal. */
  async outcome(): Promise<Event> {
    return this.saw((event) => event.url !== undefined || event.refused !== undefined);
  }

  async url(): Promise<string> {
    const { url, refused } = await this.outcome();
    if (url === undefined) throw new Error(`Refused: ${refused}`);
    return url;
  }

  /** Does what a Ctrl-C in a terminal does. */
  interruptGroup(): void {
    process.kill(-this.pid, 'SIGINT');
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    this.child.kill(signal);
    await this.closed;
    Owner.all.delete(this);
  }
}

export function isRunnableBy(uid: number): boolean {
  return spawnSync(process.execPath, ['--check', SCRIPT], { uid, gid: uid, cwd: '/' }).status === 0;
}

export async function eventually<T>(look: () => T | undefined | false, otherwise: string): Promise<T> {
  for (const end = performance.now() + 30_000; performance.now() < end; await sleep(10)) {
    const found = look();
    if (found) return found;
  }
  throw new Error(`In vain: ${otherwise}`);
}

export async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows.flatMap((row) => Object.values(row));
  } finally {
    await client.end();
  }
}

/** Throws while the file is missing or being written: a pid of 0 would stand for the process group of the tests. */
export function postmasterPid(dataDir: string): number {
  const [pid] = /^\d+(?=\n)/.exec(readFileSync(join(dataDir, 'postgres/postmaster.pid'), 'utf8')) ?? [];
  if (pid === undefined) throw new Error(`No server is up in ${dataDir}`);
  return Number(pid);
}

const made: string[] = [];

/** A folder that goes away after the tests. `mode` is what other accounts see of it. */
export function temporaryDir(mode: number): string {
  const dir = mkdtempSync(join(tmpdir(), 'embedded-server-'));
  chmodSync(dir, mode);
  made.push(dir);
  return dir;
}

/** Ends every process of the tests, also servers that were meant to lose their owner, and removes their folders. */
export async function cleanUp(): Promise<void> {
  await Promise.all([...Owner.all].map((owner) => owner.kill('SIGTERM')));
  for (const dir of made) {
    for (const dataDir of [dir, join(dir, 'data')]) {
      try {
        process.kill(postmasterPid(dataDir), 'SIGQUIT');
      } catch {
        // No server was left behind.
      }
      try {
        rmSync(dirname(readlinkSync(join(dataDir, 'postgres'))), { recursive: true, maxRetries: 5 });
      } catch {
        // The cluster was in the folder itself.
      }
    }
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  }
}
