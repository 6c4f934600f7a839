import { setTimeout as sleep } from 'node:timers/promises';

import pg from 'pg';

import type { Cluster } from './embedded-cluster.js';
import { DataDirInUseError, EmbeddedServerError, errorCode } from './embedded-error.js';
import {
  adopt,
  findRunning,
  isRetired,
  launch,
  removeStaleLockFile,
  retire,
  runsAsWanted,
} from './embedded-postmaster.js';
import type { Ended, Server } from './embedded-postmaster.js';
import { freePort, isAlive } from './embedded-process.js';

/** A running server whose ownership lock this process holds. */
export interface Held {
  readonly port: number;
  readonly server: Server;
  readonly owner: pg.Client;
  /** Resolves when the server or the owner's connection is gone. */
  readonly lost: Promise<void>;
}

export interface Request {
  readonly settings: Readonly<Record<string, string>>;
  readonly log: (line: string) => void;
  /** The port that clients know already; absent at the first start. */
  readonly port?: number;
  /** A server that may still run after its owner's connection was lost. */
  readonly server?: Server;
  readonly signal: AbortSignal;
}

/** An arbitrary constant ("decl" in ASCII): the session-level advisory lock that says whose the data directory is. */
const OWNERSHIP_LOCK = 0x6465636c;

/** Crash recovery after much writing takes minutes; a server that starts is left the time. */
const START_LIMIT_MS = 300_000;
/** After a kill of the postmaster its children take a moment to let go of the shared memory. */
const SHARED_MEMORY_PATIENCE_MS = 15_000;
/** A lock outlives its killed holder by a moment. */
const DEAD_OWNER_PATIENCE_MS = 2_000;
/** A living owner may be one that was killed just now and shows for an instant still. */
const LIVING_OWNER_PATIENCE_MS = 250;
const POLL_MS = 20;
/** How often a server may be stopped or killed by somebody else while it starts. */
const MAX_UNEXPLAINED_ENDS = 10;

/** Connection errors of a server that starts, stops, recovers or has no connection left: it is worth trying again. */
const PASSING_ERRORS = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  '57P01',
  '57P02',
  '57P03',
  '53300',
]);

/**
 * Finds or starts the server of a cluster and takes the ownership lock on it. What counts is the lock: whoever gets it owns
 * the data directory, whichever process started the server. So the server that a killed service left running is simply
 * taken over, unless it runs with other programs or settings than ours.
 */
export async function acquire(cluster: Cluster, request: Request): Promise<Held> {
  const attempt = new Acquisition(cluster, request);
  try {
    return await attempt.run();
  } catch (error) {
    await attempt.abandon(error);
    throw error;
  }
}

class Acquisition {
  private server: Server | undefined;
  private port: number | undefined;
  private sharedMemorySince_ms: number | undefined;
  private refusedSince_ms: number | undefined;
  private unexplainedEnds = 0;

  constructor(
    private readonly cluster: Cluster,
    private readonly request: Request,
  ) {
    this.server = request.server;
    this.port = request.port;
  }

  async run(): Promise<Held> {
    const end_ms = performance.now() + START_LIMIT_MS;
    while (performance.now() < end_ms) {
      this.request.signal.throwIfAborted();
      const held = await this.step();
      if (held) return held;
      await sleep(POLL_MS);
    }
    throw new EmbeddedServerError(`PostgreSQL in ${this.cluster.dir} does not come up; see ${this.cluster.logFile}`);
  }

  /** A server that nobody else owns must not stay behind. One that another service owns by now is that service's. */
  async abandon(reason: unknown): Promise<void> {
    if (!this.server || this.server.hasEnded()) return;
    if (reason instanceof DataDirInUseError) this.server.release();
    else await retire(this.cluster, this.server.pid);
  }

  private async step(): Promise<Held | undefined> {
    const running = await findRunning(this.cluster);
    if (!running) return this.startServer();
    if (running.port === undefined) return undefined;
    const owner = await this.connect(running.port);
    if (!owner) return undefined;
    let held: Held | undefined;
    try {
      held = await this.claim(owner, running.pid, running.port);
    } catch (error) {
      ifPassing(error);
    } finally {
      if (!held) await owner.end().catch(() => undefined);
    }
    return held;
  }

  private async startServer(): Promise<undefined> {
    if (this.server && !this.server.hasEnded()) return;
    if (this.server) await this.judge(await this.server.ended);
    this.port ??= this.request.port ?? (await freePort());
    this.server = await launch(this.cluster, this.port, this.request.settings);
  }

  /** Decides from how the server ended whether another try can help. */
  private async judge({ failed, complaint }: Ended): Promise<void> {
    this.server = undefined;
    if (/lock file ".*" (already exists|is empty)/.test(complaint)) {
      await removeStaleLockFile(this.cluster);
    } else if (/shared memory block .* still in use/.test(complaint)) {
      this.sharedMemorySince_ms ??= performance.now();
      if (performance.now() - this.sharedMemorySince_ms > SHARED_MEMORY_PATIENCE_MS) throw this.refusal(complaint);
      await sleep(200);
    } else if (/could not (create any TCP\/IP sockets|bind)/.test(complaint)) {
      if (this.request.port !== undefined) throw this.refusal(`port ${this.request.port} is taken`);
      this.port = undefined;
    } else if (failed || ++this.unexplainedEnds > MAX_UNEXPLAINED_ENDS) {
      throw this.refusal(complaint);
    }
  }

  private refusal(complaint: string): EmbeddedServerError {
    return new EmbeddedServerError(`PostgreSQL in ${this.cluster.dir} does not start: ${complaint}`);
  }

  private async connect(port: number): Promise<pg.Client | undefined> {
    const owner = new pg.Client({
      host: '127.0.0.1',
      port,
      user: 'postgres',
      password: this.cluster.password,
      database: 'postgres',
      application_name: `decision-ledger owner pid=${process.pid}`,
      connectionTimeoutMillis: 5_000,
      keepAlive: true,
      // Said outright, because the driver would otherwise read them from PGSSLMODE and PGOPTIONS.
      ssl: false,
      options: '-c statement_timeout=0',
    });
    // A connection that breaks also emits an error; what follows from it is decided where `end` is awaited.
    owner.on('error', () => undefined);
    try {
      await owner.connect();
      return owner;
    } catch (error) {
      await owner.end().catch(() => undefined);
      if (errorCode(error) === '28P01') {
        const file = `${this.cluster.dataDir}/postgres-password`;
        throw new EmbeddedServerError(`PostgreSQL in ${this.cluster.dir} does not accept the password in ${file}`);
      }
      return ifPassing(error);
    }
  }

  private async claim(owner: pg.Client, pid: number, port: number): Promise<Held | undefined> {
    const { rows } = await owner.query<{ mine: boolean }>('SELECT pg_try_advisory_lock($1) AS mine', [OWNERSHIP_LOCK]);
    if (rows[0]?.mine !== true) return this.giveWay(owner);
    const isOnPort = this.request.port === undefined || this.request.port === port;
    const isWanted = isOnPort && (await runsAsWanted(this.cluster, port, this.request.settings));
    // Read after the lock was taken: whoever held it before us left word before stopping the server.
    const wasRetired = await isRetired(this.cluster, pid);
    if (wasRetired || !isWanted) {
      if (!wasRetired) this.request.log(`restarting the PostgreSQL that runs (process ${pid}): it has other settings`);
      await retire(this.cluster, pid);
      return undefined;
    }
    if (this.server?.pid !== pid) {
      this.request.log(`taking over the PostgreSQL that runs without a service (process ${pid})`);
      this.server = adopt(pid);
    }
    const disconnected = new Promise<void>((resolve) => owner.once('end', resolve));
    const lost = Promise.race([this.server.ended, disconnected]).then(() => undefined);
    return { port, server: this.server, owner, lost };
  }

  /** Somebody holds the lock: an error if it is a living service, patience if it is one that was killed. */
  private async giveWay(owner: pg.Client): Promise<undefined> {
    const { rows } = await owner.query<{ application_name: string }>(
      `SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)
       WHERE l.locktype = 'advisory' AND l.classid = 0 AND l.objid = $1 AND l.objsubid = 1 AND l.granted`,
      [OWNERSHIP_LOCK],
    );
    if (!rows[0]) return;
    const ownerPid = Number(/pid=(\d+)/.exec(rows[0].application_name)?.[1]) || undefined;
    // While we recover, the holder may be our own connection that broke and whose end the server has not noticed.
    const isFormerSelf = ownerPid === process.pid && this.request.port !== undefined;
    const isLiving = ownerPid !== undefined && isAlive(ownerPid) && !isFormerSelf;
    this.refusedSince_ms ??= performance.now();
    const patience_ms = isLiving ? LIVING_OWNER_PATIENCE_MS : DEAD_OWNER_PATIENCE_MS;
    if (performance.now() - this.refusedSince_ms > patience_ms) {
      throw new DataDirInUseError(this.cluster.dataDir, ownerPid);
    }
  }
}

/** A passing error, or one that only says that the connection broke, is none; any other is the operator's to see. */
function ifPassing(error: unknown): undefined {
  const code = errorCode(error);
  if (error instanceof EmbeddedServerError) throw error;
  if (code === undefined || PASSING_ERRORS.has(code)) return;
  throw new EmbeddedServerError(`PostgreSQL refuses the service: ${error instanceof Error ? error.message : code}`);
}
