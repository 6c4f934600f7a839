import { randomBytes } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { Database } from '#database';
import type { CallOutcome } from '#effects';
import { sha256 } from '#key';
import { newId } from './new-id.js';
import type { Disposition } from './answer.js';
import { jobOf, type DispatchJob, type JobRow } from './dispatch-job.js';
import { Leases, type ReportedOutcome } from './leases.js';
import { LEDGER_SETTINGS, type LedgerSettings } from './ledger-settings.js';
import { patiently } from './patience.js';

const SECRET_BYTES = 32;
/** How long a report waits for a row that another transaction holds. Such a transaction is short. */
const REPORT_WAIT_MS = 2_000;
/** Leases that are marked in one statement; what is left over is marked by the next sweep. */
const SWEEP_BATCH = 500;

/** The channel on which a tenant's name tells that something was queued for it. */
export const DISPATCH_CHANNEL = 'decision_ledger_dispatch';

/** How a try left its decision. */
export type DispatchState = Disposition | 'in_flight';

/** What is not finished, over all tenants. */
export interface Unfinished {
  readonly inFlightOldestSeconds: number;
  readonly unknown: number;
}

/** The queue as a worker sees it. Whatever it does shows the number of its lease; what it was too late for changes nothing. */
@Injectable()
export class Dispatches {
  private readonly leases: Leases;
  /** What this worker shows beside the numbers of its leases. It never leaves the process. */
  private readonly secret = randomBytes(SECRET_BYTES).toString('base64url');
  private readonly secretSha256 = sha256(this.secret);

  constructor(
    private readonly database: Database,
    @Inject(LEDGER_SETTINGS) settings: LedgerSettings,
  ) {
    this.leases = new Leases(database, settings);
  }

  /** Takes the lease of at most `limit` tries that are due, of hosts that are not busy. */
  async claim(tenant: string, limit: number, busyHosts: readonly string[]): Promise<DispatchJob[]> {
    const claimedAt = performance.now();
    const attemptIds = Array.from({ length: limit }, () => newId());
    const rows = await this.database.statement<JobRow>(
      `SELECT *, (extract(epoch FROM clock_timestamp()) * 1000)::double precision AS claimed_at_epoch_ms
         FROM claim_dispatch($1, $2, $3, $4, $5)`,
      [tenant, limit, busyHosts, this.secretSha256, attemptIds],
    );
    return rows.map((row) => jobOf(tenant, row, claimedAt));
  }

  /** Prolongs the lease of a call under way. False: it is lost. */
  async extend({ tenant, decisionId, leaseNumber }: DispatchJob): Promise<boolean> {
    const [row] = await this.database.statement<{ held: boolean }>('SELECT extend_dispatch($1, $2, $3, $4) AS held', [
      tenant,
      decisionId,
      leaseNumber,
      this.secretSha256,
    ]);
    return row?.held === true;
  }

  /**
   * Records what became of a try: its outcome, or that it is to be made again after a pause.
   *
   * @param startedAt `performance.now()` when the try began
   */
  async report(job: DispatchJob, outcome: CallOutcome, pauseMs: number, startedAt: number): Promise<DispatchState> {
    if (outcome.kind === 'again') return this.release(job, outcome.mayHaveHappened, pauseMs, startedAt);
    const { tenant, requestId, decisionId, leaseNumber } = job;
    const arrival = { caller: WORKER(tenant), requestId, startedAt };
    const token = `${leaseNumber}.${this.secret}`;
    const { answer } = await this.leases.complete(arrival, decisionId, token, reported(outcome));
    return answer.disposition;
  }

  /** In how many milliseconds the next try of each tenant is due. */
  async agenda(tenants: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const rows = await this.database.statement<{ tenant_id: string; due_in_ms: number }>(
      'SELECT * FROM dispatch_agenda($1)',
      [tenants],
    );
    return new Map(rows.map(({ tenant_id, due_in_ms }) => [tenant_id, due_in_ms]));
  }

  /** Marks the leases that ran out and may not be taken back, and tells how many of which tenant. */
  async sweep(tenants: readonly string[]): Promise<{ tenant: string; marked: number }[]> {
    const rows = await this.database.statement<{ tenant: string; marked: number }>(
      'SELECT tenant, sweep_leases(tenant, $2) AS marked FROM unnest($1::text[]) AS tenant',
      [tenants, SWEEP_BATCH],
    );
    return rows.filter(({ marked }) => marked > 0);
  }

  async unfinished(tenants: readonly string[]): Promise<Unfinished> {
    const [row] = await this.database.statement<{ in_flight_oldest_seconds: number; unknown: number }>(
      'SELECT * FROM unfinished_keys($1)',
      [tenants],
    );
    return { inFlightOldestSeconds: row?.in_flight_oldest_seconds ?? 0, unknown: row?.unknown ?? 0 };
  }

  private async release(
    { tenant, decisionId, leaseNumber }: DispatchJob,
    mayHaveHappened: boolean,
    pauseMs: number,
    startedAt: number,
  ): Promise<DispatchState> {
    const attemptId = newId();
    const [row] = await patiently(performance.now() + REPORT_WAIT_MS, ({ lockTimeoutMs }) =>
      this.database.statement<{ state: DispatchState | null }>(
        'SELECT release_dispatch($1, $2, $3, $4, $5, $6, $7, $8, $9) AS state',
        [
          tenant,
          lockTimeoutMs,
          decisionId,
          leaseNumber,
          this.secretSha256,
          mayHaveHappened,
          pauseMs,
          attemptId,
          performance.now() - startedAt,
        ],
      ),
    );
    return row?.state ?? 'lease_lost';
  }
}

/** Whom the record names for what the worker brought about. No credential has this id: those are hex digits. */
const WORKER = (tenant: string): { tenant: string; role: 'orchestrator'; credentialId: string } => ({
  tenant,
  role: 'orchestrator',
  credentialId: 'worker',
});

function reported(outcome: CallOutcome & { kind: 'applied' | 'refused' }): ReportedOutcome {
  if (outcome.kind === 'applied') return { status: 'applied', result: outcome.result };
  return {
    status: 'refused',
    reason: `downstream-${outcome.status}`,
    detail: `The system that the effect was dispatched to answered ${outcome.status}.`,
  };
}
