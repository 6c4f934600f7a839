import type { Dispatches, DispatchJob } from '#ledger';

/** A lease is renewed at a third of its time, so that one renewal may go amiss. */
const RENEWALS_A_LEASE = 3;
/** Nothing is sent in the last part of a lease: it must still be held when the bytes arrive. */
const TIME_TO_SEND = 1 / 4;

/** Keeps the lease of one try for as long as its call takes, and knows whether it is held. */
export class LeaseKeeper {
  private readonly timer: NodeJS.Timeout;
  private readonly lost = new AbortController();
  private heldUntil: number;

  constructor(
    private readonly dispatches: Dispatches,
    private readonly job: DispatchJob,
  ) {
    this.heldUntil = job.claimedAt + job.leaseMs;
    this.timer = setInterval(() => void this.renew(), job.leaseMs / RENEWALS_A_LEASE);
  }

  /** Aborted once somebody else has the lease: whatever the call still brings would come too late. */
  get signal(): AbortSignal {
    return this.lost.signal;
  }

  /**
   * Whether there is time to send. By a clock that goes on while the process stands still, and from before the database
   * gave the lease: so at any moment it is held there for longer than is believed here.
   */
  readonly maySend = (): boolean => performance.now() < this.heldUntil - this.job.leaseMs * TIME_TO_SEND;

  /** What time it is by the database's clock, in milliseconds since 1970: that of this machine may be wrong. */
  readonly databaseTime = (): number => this.job.claimedAtEpochMs + performance.now() - this.job.claimedAt;

  stop(): void {
    clearInterval(this.timer);
  }

  private async renew(): Promise<void> {
    const askedAt = performance.now();
    try {
      if (await this.dispatches.extend(this.job)) this.heldUntil = askedAt + this.job.leaseMs;
      else this.lost.abort();
    } catch {
      // The database is away: the next renewal may come in time, and if not, the number tells.
    }
  }
}
