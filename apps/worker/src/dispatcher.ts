import { setTimeout as sleep } from 'node:timers/promises';
import { listen, type Database, type Settings } from '#database';
import { Breakers, DispatchTargets } from '#effects';
import { DISPATCH_CHANNEL, type Dispatches, type DispatchJob } from '#ledger';
import type { WorkerLog } from './loop.js';
import { makeTry, type TryParts } from './try.js';

const MOST_UNDER_WAY = 16;
/** A slow host must leave room for the others. */
const MOST_OF_A_HOST = 8;
const CLAIMED_AT_ONCE = 4;

/** Notices may be lost; nothing waits longer than this for being found. */
const SCAN_MS = 2_000;
/** The least time between two looks at a tenant whose due tries could not be taken just now. */
const LOOK_AGAIN_MS = 250;
const AFTER_FAILURE_MS = 1_000;

/** The time that calls under way have to end when the worker stops. What is cut off then may have happened. */
const STOP_MS = 12_000;

/** Works the queue: claims what is due, as soon as it is and as far as there is room, and makes the calls side by side. */
export class Dispatcher {
  private readonly stopping = new AbortController();
  private readonly givingUp = new AbortController();
  private readonly breakers = new Breakers();
  private readonly parts: TryParts;
  private readonly underWay = new Map<DispatchJob, Promise<void>>();
  /** Tenants that something was just queued for. */
  private readonly noticed = new Set<string>();
  /** Tenants that were not given all that they could have, because these hosts were busy. */
  private readonly heldBack = new Map<string, readonly string[]>();
  /** When each tenant's next try is due, on the clock of `performance.now()`. */
  private readonly dueAt = new Map<string, number>();
  private wake = new AbortController();

  constructor(
    private readonly dispatches: Dispatches,
    settings: Settings,
    private readonly tenants: () => Promise<string[]>,
    private readonly log: WorkerLog,
  ) {
    const targets = new DispatchTargets(settings.dispatchAllowedHosts, settings.secret);
    this.parts = { dispatches, targets, breakers: this.breakers, log, giveUp: this.givingUp.signal };
  }

  /** Until {@link stop}, and until the calls that are under way then have ended. */
  async run(database: Database): Promise<void> {
    const listener = listen(database, DISPATCH_CHANNEL, (tenant) => {
      this.noticed.add(tenant);
      this.wake.abort();
    });
    let scanAt = performance.now();
    while (!this.stopping.signal.aborted) {
      try {
        if (performance.now() >= scanAt) {
          scanAt = performance.now() + SCAN_MS;
          await this.look(await this.tenants());
        }
        await this.claimDue();
        await this.rest(scanAt);
      } catch (error) {
        this.log.error(error);
        await this.pause(AFTER_FAILURE_MS);
      }
    }
    await Promise.all([listener.close(), ...this.underWay.values()]);
  }

  /** Claims nothing more, and lets the calls under way end; those that do not in time are cut off, and reported as that. */
  stop(): void {
    this.stopping.abort();
    this.wake.abort();
    setTimeout(() => this.givingUp.abort(), STOP_MS).unref();
  }

  private async claimDue(): Promise<void> {
    for (const tenant of this.dueTenants()) {
      const room = Math.min(CLAIMED_AT_ONCE, MOST_UNDER_WAY - this.underWay.size);
      if (room <= 0 || this.stopping.signal.aborted) return;
      this.noticed.delete(tenant);
      this.heldBack.delete(tenant);
      const busyHosts = this.busyHosts();
      const jobs = await this.dispatches.claim(tenant, room, busyHosts);
      for (const job of jobs) this.start(job);
      // The next tenant has its turn before this one is asked for more.
      if (jobs.length === room) this.noticed.add(tenant);
      else {
        if (busyHosts.length > 0) this.heldBack.set(tenant, busyHosts);
        await this.look([tenant]);
      }
    }
  }

  private dueTenants(): string[] {
    const now = performance.now();
    const due = [...this.dueAt].filter(([, at]) => at <= now).map(([tenant]) => tenant);
    // A host's queue goes on as soon as calls to it have ended, not when somebody looks at it the next time.
    const busy = this.busyHosts();
    const freed = [...this.heldBack].filter(([, hosts]) => hosts.some((host) => !busy.includes(host)));
    return [...new Set([...this.noticed, ...due, ...freed.map(([tenant]) => tenant)])];
  }

  /** Hosts with so many calls under way that what is claimed at once could be too many. */
  private busyHosts(): string[] {
    const counts = new Map<string, number>();
    for (const { host } of this.underWay.keys()) counts.set(host, (counts.get(host) ?? 0) + 1);
    return [...counts].filter(([, count]) => count > MOST_OF_A_HOST - CLAIMED_AT_ONCE).map(([host]) => host);
  }

  private start(job: DispatchJob): void {
    this.underWay.set(job, this.follow(job));
  }

  private async follow(job: DispatchJob): Promise<void> {
    const pauseMs = await makeTry(job, this.parts);
    this.underWay.delete(job);
    if (pauseMs !== null) this.expect(job.tenant, performance.now() + pauseMs);
    this.wake.abort();
  }

  /** Looks at a tenant at a given time, if not before. */
  private expect(tenant: string, at: number): void {
    this.dueAt.set(tenant, Math.min(at, this.dueAt.get(tenant) ?? Infinity));
  }

  /** Asks when the next try of each of these tenants is due. */
  private async look(tenants: readonly string[]): Promise<void> {
    const now = performance.now();
    const agenda = await this.dispatches.agenda(tenants);
    for (const tenant of tenants) {
      const dueInMs = agenda.get(tenant);
      if (dueInMs === undefined) this.dueAt.delete(tenant);
      else this.dueAt.set(tenant, now + Math.max(dueInMs, LOOK_AGAIN_MS));
    }
  }

  /** Until the next scan, the next try that is due, a notice, or the end of a call. */
  private async rest(scanAt: number): Promise<void> {
    const isFull = this.underWay.size >= MOST_UNDER_WAY;
    if (this.noticed.size > 0 && !isFull) return;
    const nextAt = isFull ? scanAt : Math.min(scanAt, ...this.dueAt.values());
    await this.pause(nextAt - performance.now());
  }

  private async pause(ms: number): Promise<void> {
    if (ms > 0) await sleep(ms, undefined, { signal: this.wake.signal }).catch(() => undefined);
    if (this.wake.signal.aborted && !this.stopping.signal.aborted) this.wake = new AbortController();
  }
}
