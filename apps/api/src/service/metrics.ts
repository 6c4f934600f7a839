import { Injectable } from '@nestjs/common';
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import { Database } from '#database';
import type { Disposition, Unfinished } from '#ledger';
import type { SealingLag } from '#log';

const MS_A_SECOND = 1000;
const BUCKETS_SECONDS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10];

/** A request under way; `startedAt` is `performance.now()`. */
interface Arrived {
  readonly startedAt: number;
}

/** What the service counts, in Prometheus' form. */
@Injectable()
export class Metrics {
  readonly registry = new Registry();
  private readonly arrivals = new Set<Arrived>();

  private readonly decisions = new Counter({
    name: 'decisions_total',
    help: 'Attempts by what became of them.',
    labelNames: ['action', 'disposition'],
    registers: [this.registry],
  });

  private readonly duration = new Histogram({
    name: 'decision_duration_seconds',
    help: 'From the arrival of an attempt to its answer.',
    labelNames: ['disposition'],
    buckets: BUCKETS_SECONDS,
    registers: [this.registry],
  });

  constructor(private readonly database: Database) {
    collectDefaultMetrics({ register: this.registry });
    this.gauge('requests_in_flight', 'Requests that this process is answering.', () => this.arrivals.size);
    this.gauge('request_in_flight_oldest_seconds', 'Age of the oldest of them.', () => this.oldestSeconds());
    this.gauge(
      'database_pool_connections',
      'Connections of the pool, used and idle.',
      () => this.database.pool().total,
    );
    this.gauge('database_pool_idle', 'Connections of the pool that nobody uses.', () => this.database.pool().idle);
    this.gauge('database_pool_waiting', 'Requests that wait for a connection.', () => this.database.pool().waiting);
  }

  /** Shows what the worker of this process found unfinished. */
  followWorker(worker: { unfinished(): Unfinished; sealing(): SealingLag & { stopped: number } }): void {
    this.gauge(
      'decisions_in_flight_oldest_seconds',
      'Age of the oldest key in flight, over all tenants, at the last sweep.',
      () => worker.unfinished().inFlightOldestSeconds,
    );
    this.gauge(
      'decisions_unknown',
      'Decisions of which nobody knows whether they happened, over all tenants, at the last sweep.',
      () => worker.unfinished().unknown,
    );
    this.gauge(
      'log_unsealed_entries',
      'Ledger entries that no checkpoint covers, over all tenants, at the last sweep.',
      () => worker.sealing().unsealed,
    );
    this.gauge(
      'log_sealing_lag_seconds',
      'Age of the oldest entry without a place in the log, over all tenants, at the last sweep.',
      () => worker.sealing().lagSeconds,
    );
    this.gauge(
      'log_trees_stopped',
      'Logs that this worker must not seal further until somebody has looked.',
      () => worker.sealing().stopped,
    );
  }

  countDecision(action: string, disposition: Disposition, latencyMs: number): void {
    this.decisions.inc({ action, disposition });
    this.duration.observe({ disposition }, latencyMs / MS_A_SECOND);
  }

  arrived(request: Arrived): void {
    this.arrivals.add(request);
  }

  answered(request: Arrived): void {
    this.arrivals.delete(request);
  }

  /** A set keeps the order of insertion, so its first member is the oldest. */
  private oldestSeconds(): number {
    const [oldest] = this.arrivals;
    return oldest === undefined ? 0 : (performance.now() - oldest.startedAt) / MS_A_SECOND;
  }

  private gauge(name: string, help: string, read: () => number): void {
    new Gauge({
      name,
      help,
      registers: [this.registry],
      collect() {
        this.set(read());
      },
    });
  }
}
