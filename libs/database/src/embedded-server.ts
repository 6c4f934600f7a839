import { setTimeout as sleep } from 'node:timers/promises';

import { prepareCluster, type Cluster } from './embedded-cluster.js';
import { asOperatorError, DataDirInUseError, EmbeddedServerError } from './embedded-error.js';
import { acquire, type Held } from './embedded-ownership.js';
import { retire } from './embedded-postmaster.js';

export { EmbeddedServerError } from './embedded-error.js';
export { freePort } from './embedded-process.js';

export interface EmbeddedServer {
  /** `postgres://postgres:<password>@127.0.0.1:<port>/postgres`, a superuser's. Good until `stop`, also over restarts. */
  readonly url: string;
  readonly port: number;
  /** Stops the server and waits until it is gone. Any number of calls. */
  stop(): Promise<void>;
}

export interface EmbeddedServerOptions {
  /** Made if missing. Holds the cluster, its password and its log. */
  readonly dataDir: string;
  /** Further settings of PostgreSQL, as in postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly log?: (line: string) => void;
  /** Called once if the server is lost for good; the service has then no database and should end. */
  readonly onFailure?: (error: EmbeddedServerError) => void;
}

/** A server that was lost sooner than this after it came up has failed quickly. */
const QUICK_FAILURE_MS = 10_000;
const MAX_QUICK_FAILURES = 5;
const FIRST_PAUSE_MS = 100;

/**
 * Starts a real PostgreSQL whose cluster lives in `<dataDir>/postgres`, and keeps it running until `stop`. One service
 * owns a data directory at a time. Installs no handler for signals: those belong to the application, which calls `stop`.
 * Throws EmbeddedServerError.
 */
export async function startEmbeddedServer(options: EmbeddedServerOptions): Promise<EmbeddedServer> {
  const log = options.log ?? (() => undefined);
  const { settings = {}, onFailure = () => undefined } = options;
  const stopping = new AbortController();
  try {
    const cluster = await prepareCluster(options.dataDir, log);
    const held = await acquire(cluster, { settings, log, signal: stopping.signal });
    return new SupervisedServer(cluster, held, { settings, log, onFailure }, stopping);
  } catch (error) {
    throw asOperatorError(options.dataDir, error);
  }
}

type Supervision = Required<Omit<EmbeddedServerOptions, 'dataDir'>>;

class SupervisedServer implements EmbeddedServer {
  readonly url: string;
  readonly port: number;
  private readonly supervision: Promise<void>;
  private stopped: Promise<void> | undefined;
  /** No longer, once another service has taken the data directory: its server is not ours to stop. */
  private isOwner = true;

  constructor(
    private readonly cluster: Cluster,
    private held: Held,
    private readonly options: Supervision,
    private readonly stopping: AbortController,
  ) {
    this.port = held.port;
    this.url = `postgres://postgres:${cluster.password}@127.0.0.1:${held.port}/postgres`;
    this.supervision = this.supervise();
  }

  stop(): Promise<void> {
    this.stopped ??= this.stopOnce();
    return this.stopped;
  }

  /** The lock goes with the server, not before it: nobody can take over a server that is about to stop. */
  private async stopOnce(): Promise<void> {
    this.stopping.abort();
    await this.shutDownHeld();
    await this.supervision;
    // A restart may have succeeded at the very instant of the call.
    await this.shutDownHeld();
  }

  private async shutDownHeld(): Promise<void> {
    const { server, owner } = this.held;
    if (this.isOwner && !server.hasEnded()) await retire(this.cluster, server.pid);
    await owner.end().catch(() => undefined);
  }

  /** Brings the server back, on the port that clients know, whenever it is lost. */
  private async supervise(): Promise<void> {
    const { signal } = this.stopping;
    let failures = 0;
    while (!signal.aborted) {
      const since_ms = performance.now();
      await this.held.lost;
      failures = performance.now() - since_ms < QUICK_FAILURE_MS ? failures + 1 : 1;
      while (!signal.aborted) {
        try {
          this.held = await this.restart(failures);
          break;
        } catch (error) {
          failures += 1;
          const failure = asFailure(error);
          if (signal.aborted) return;
          if (failure instanceof DataDirInUseError || failures > MAX_QUICK_FAILURES) return this.giveUp(failure);
          this.options.log(failure.message);
        }
      }
    }
  }

  private async restart(failures: number): Promise<Held> {
    const { server, owner, port } = this.held;
    if (failures > MAX_QUICK_FAILURES) throw new EmbeddedServerError(`PostgreSQL was lost ${failures} times in a row`);
    this.options.log(`PostgreSQL (process ${server.pid}) is lost; bringing it back on port ${port}`);
    void owner.end().catch(() => undefined);
    const { signal } = this.stopping;
    if (failures > 1) await sleep(FIRST_PAUSE_MS * 2 ** failures, undefined, { signal });
    const { settings, log } = this.options;
    const held = await acquire(this.cluster, { settings, log, port, server, signal });
    log(`PostgreSQL is back on port ${port} (process ${held.server.pid})`);
    return held;
  }

  private async giveUp(failure: EmbeddedServerError): Promise<void> {
    this.options.log(`giving up on PostgreSQL: ${failure.message}`);
    this.isOwner = !(failure instanceof DataDirInUseError);
    await this.shutDownHeld();
    this.options.onFailure(failure);
  }
}

function asFailure(error: unknown): EmbeddedServerError {
  if (error instanceof EmbeddedServerError) return error;
  return new EmbeddedServerError(error instanceof Error ? error.message : String(error), { cause: error });
}
