import { listTenants } from '#access';
import type { Database, Settings } from '#database';
import { StoredResponses } from '#idempotency';
import { Dispatches, ReadingCopy, type Unfinished } from '#ledger';
import { Sealer, type SealingLag } from '#log';
import { Dispatcher } from './dispatcher.js';
import { every, type WorkerLog } from './loop.js';
import { Sealing } from './sealing.js';

const MS_A_SECOND = 1000;
/** Rare enough that many entries are copied at once, and so often that few have to be read from where they were recorded. */
const COPY_INTERVAL_SECONDS = 1;

export interface Worker {
  /** What the last sweep found unfinished. */
  unfinished(): Unfinished;
  /** How far sealing was behind at the last sweep, and how many logs this worker must not seal further. */
  sealing(): SealingLag & { readonly stopped: number };
  /** Lets the rounds and the calls under way finish, and starts no other. */
  stop(): Promise<void>;
}

/** Time comes in here: what has to happen without a request. Any number of workers may run at once. */
export function startWorker(database: Database, settings: Settings, log: WorkerLog): Worker {
  const responses = new StoredResponses(database);
  const dispatches = new Dispatches(database, settings);
  const dispatcher = new Dispatcher(dispatches, settings, () => listTenants(database), log);
  const stopping = new AbortController();
  const readingCopy = new ReadingCopy(database);
  const sealer = new Sealer(database, settings);
  const sealing = new Sealing(sealer, log, stopping.signal);
  let lag: SealingLag = { unsealed: 0, lagSeconds: 0 };
  let unfinished: Unfinished = { inFlightOldestSeconds: 0, unknown: 0 };

  /** The end of stored responses. */
  async function prune(): Promise<void> {
    for (const tenant of await listTenants(database)) {
      if (stopping.signal.aborted) return;
      const pruned = await responses.prune(tenant);
      if (pruned > 0) log.info({ event: 'pruned', tenant, pruned });
    }
  }

  /** The end of leases that nobody may take back, and a look at what is unfinished. */
  async function sweep(): Promise<void> {
    const tenants = await listTenants(database);
    for (const { tenant, marked } of await dispatches.sweep(tenants))
      log.info({ event: 'swept', tenant, unknown: marked });
    unfinished = await dispatches.unfinished(tenants);
    lag = await sealer.lag(tenants);
  }

  /** The place in the log of what was recorded. */
  async function seal(): Promise<void> {
    await sealing.round(await listTenants(database));
  }

  /** The copy of what was recorded, in which lists look. */
  async function copy(): Promise<void> {
    await readingCopy.copy(await listTenants(database), stopping.signal);
  }

  const running = Promise.all([
    every(settings.pruneIntervalSeconds, log, stopping.signal, prune),
    every(settings.sweepIntervalSeconds, log, stopping.signal, sweep),
    every(settings.sealIntervalMs / MS_A_SECOND, log, stopping.signal, seal),
    every(COPY_INTERVAL_SECONDS, log, stopping.signal, copy),
    dispatcher.run(database),
  ]);
  return {
    unfinished: () => unfinished,
    sealing: () => ({ ...lag, stopped: sealing.stopped }),
    async stop() {
      stopping.abort();
      dispatcher.stop();
      await running;
    },
  };
}
