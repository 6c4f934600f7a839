import { setTimeout as sleep } from 'node:timers/promises';
import { listTenants } from '#access';
import type { Database, Settings } from '#database';
import { StoredResponses } from '#idempotency';

const MS_A_SECOND = 1000;

interface WorkerLog {
  info(members: Readonly<Record<string, unknown>>): void;
  error(message: unknown): void;
}

export interface Worker {
  /** Lets the round under way finish, and starts no other. */
  stop(): Promise<void>;
}

/** Time comes in here: what has to happen without a request. For now that is the end of stored responses. */
export function startWorker(database: Database, settings: Settings, log: WorkerLog): Worker {
  const responses = new StoredResponses(database);
  const stopping = new AbortController();

  async function prune(): Promise<void> {
    for (const tenant of await listTenants(database)) {
      if (stopping.signal.aborted) return;
      const pruned = await responses.prune(tenant);
      if (pruned > 0) log.info({ event: 'pruned', tenant, pruned });
    }
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      // A round that fails, as when the database is away, is made up for by the next.
      await prune().catch((error: unknown) => log.error(error));
      await sleep(settings.pruneIntervalSeconds * MS_A_SECOND, undefined, { signal: stopping.signal }).catch(
        () => undefined,
      );
    }
  }

  const running = run();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
