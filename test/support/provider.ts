import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PROJECT_ROOT } from '#database';

/** What the provider does with one arrival of a key. Without more it acts and answers 200 with a reference. */
export interface Step {
  readonly status?: number;
  /** Whether it has its effect; by default if the status says so. */
  readonly acts?: boolean;
  /** `$name` in a value stands for that header of the request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Answers without a `Date`, and with a date so far from now in `Retry-After`, cut off to the second. */
  readonly askedForInMs?: number;
  readonly text?: string;
  readonly bytes?: number;
  /** Answers with the headers that it was sent. */
  readonly echo?: boolean;
  readonly waitBeforeMs?: number;
  readonly waitMs?: number;
  /** Resets the connection instead of answering. */
  readonly drop?: boolean;
  /** Breaks off in the middle of an answer. */
  readonly breakOff?: boolean;
  /** Never comes to the end of an answer. */
  readonly endless?: boolean;
}

export interface ProviderArrival {
  readonly key: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly path: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Whether another call with the same key was under way. */
  readonly overlaps: boolean;
}

export interface Provider {
  readonly host: string;
  url(path?: string): string;
  arrivals(key?: string): readonly ProviderArrival[];
  /** E, how often it had its effect for a key. */
  effects(key: string): number;
  /** Whether every call that arrived has come to its end: nothing acts any more. Not to be asked after a `down`. */
  isQuiet(): boolean;
  /** `kill -9`, and the port is free. */
  down(): Promise<void>;
  /** Up again on the same port, with the same memory. */
  up(): Promise<void>;
  close(): Promise<void>;
}

interface Line {
  readonly what: 'arrival' | 'effect' | 'end';
  readonly key: string;
}

export async function startProvider(): Promise<Provider> {
  const directory = mkdtempSync(join(tmpdir(), 'provider-'));
  const file = join(directory, 'log');
  const lines = (): Line[] =>
    existsSync(file)
      ? readFileSync(file, 'utf8')
          .split('\n')
          .filter(Boolean)
          .map((line) => JSON.parse(line) as Line)
      : [];
  let port = 0;
  let child: ChildProcess | null = null;
  const up = async (): Promise<void> => {
    child = fork(join(PROJECT_ROOT, 'test/support/provider-process.mjs'), [String(port), file], {
      execArgv: [],
      env: { PATH: process.env['PATH'] },
    });
    const [message] = (await once(child, 'message')) as [{ port: number }];
    ({ port } = message);
  };
  const down = async (): Promise<void> => {
    if (child === null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
    child = null;
  };
  await up();
  return {
    host: `127.0.0.1:${port}`,
    url: (path = '/refunds') => `http://127.0.0.1:${port}${path}`,
    arrivals: (key) =>
      lines().filter(
        (line): line is Line & ProviderArrival => line.what === 'arrival' && (key ?? line.key) === line.key,
      ),
    effects: (key) => lines().filter((line) => line.what === 'effect' && line.key === key).length,
    isQuiet: () =>
      lines().reduce((open, { what }) => open + Number(what === 'arrival') - Number(what === 'end'), 0) === 0,
    down,
    up,
    async close() {
      await down();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
