import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { PROJECT_ROOT } from '#database';
import { TEST_DATA_DIR } from './service.js';
import { until } from './stage.js';

const MAIN = join(PROJECT_ROOT, 'dist/apps/api/src/main.js');

/** A process that is the worker and nothing else. */
export interface LoneWorker {
  /** Everything that it has written. */
  output(): string;
  /** SIGTERM, and what it exits with. */
  stop(): Promise<number | null>;
  /** `kill -9`. */
  kill(): Promise<void>;
}

export async function startLoneWorker(env: Readonly<Record<string, string>>): Promise<LoneWorker> {
  const child = spawn(process.execPath, [MAIN], {
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      DATA_DIR: TEST_DATA_DIR,
      WORKER: 'only',
      LOG_LEVEL: 'info',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const text: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (part: string) => text.push(part));
  const output = (): string => text.join('');
  await until(
    async () => output().includes('worker runs') || child.exitCode !== null,
    (isOver) => isOver,
    30_000,
  );
  if (!output().includes('worker runs')) {
    child.kill('SIGKILL');
    throw new Error(`The worker did not start: ${output()}`);
  }
  return {
    output,
    async stop() {
      if (child.exitCode !== null) return child.exitCode;
      child.kill('SIGTERM');
      await once(child, 'exit');
      return child.exitCode;
    },
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}
