import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Database } from './database.js';

const RECONNECT_PAUSE_MS = 1_000;

export interface Listener {
  close(): Promise<void>;
}

/**
 * Hears what is notified on a channel, on a connection of its own. A connection that breaks is made again; what was notified
 * meanwhile is lost, and behind a pooler in transaction mode nothing is heard at all. Whoever listens must therefore also
 * look by itself from time to time: a notice only makes it sooner.
 */
export function listen(database: Database, channel: string, heard: (payload: string) => void): Listener {
  const { options } = database.dataSource;
  const connectionString = options.type === 'postgres' ? options.url : undefined;
  const closing = new AbortController();
  let client: pg.Client | null = null;

  async function connection(): Promise<void> {
    const current = new pg.Client({ connectionString, application_name: 'decision-ledger listener', keepAlive: true });
    client = current;
    const ended = new Promise<void>((resolve) => {
      current.once('end', resolve);
      // An error without a listener would end the process; `end` follows it.
      current.on('error', () => void current.end().catch(() => undefined));
    });
    current.on('notification', ({ payload }) => heard(payload ?? ''));
    await current.connect();
    await current.query(`LISTEN ${channel}`);
    await ended;
  }

  async function run(): Promise<void> {
    while (!closing.signal.aborted) {
      await connection().catch(() => client?.end().catch(() => undefined));
      await sleep(RECONNECT_PAUSE_MS, undefined, { signal: closing.signal }).catch(() => undefined);
    }
  }

  const running = run();
  return {
    async close() {
      closing.abort();
      await client?.end().catch(() => undefined);
      await running;
    },
  };
}
