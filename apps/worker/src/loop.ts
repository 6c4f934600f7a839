import { setTimeout as sleep } from 'node:timers/promises';

const MS_A_SECOND = 1000;

/** What the worker writes to. */
export interface WorkerLog {
  info(members: Readonly<Record<string, unknown>>): void;
  error(message: unknown): void;
}

/**
 * Does something again and again, with a pause in between, until the signal. A round that fails, as when the database is
 * away, is made up for by the next.
 */
export async function every(
  seconds: number,
  log: WorkerLog,
  signal: AbortSignal,
  round: () => Promise<void>,
): Promise<void> {
  while (!signal.aborted) {
    await round().catch((error: unknown) => log.error(error));
    await sleep(seconds * MS_A_SECOND, undefined, { signal }).catch(() => undefined);
  }
}
