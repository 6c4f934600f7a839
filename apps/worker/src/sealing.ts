import { LogStopped, type Sealer } from '#log';
import type { WorkerLog } from './loop.js';

/** Seals what was recorded, tenant by tenant and in turns, so that a backlog of one does not hold up the others. */
export class Sealing {
  /** Tenants whose log this process has seen in order. The others are looked at even if they have nothing to seal. */
  private readonly seen = new Set<string>();
  /** Why logs stand still, as it was logged. */
  private readonly reasons = new Map<string, string>();

  constructor(
    private readonly sealer: Sealer,
    private readonly log: WorkerLog,
    private readonly stopping: AbortSignal,
  ) {}

  /** How many logs must not be sealed further until somebody has looked. */
  get stopped(): number {
    return this.reasons.size;
  }

  /** Until there is nothing left to seal, or the signal. */
  async round(tenants: readonly string[]): Promise<void> {
    const unseen = tenants.filter((tenant) => !this.seen.has(tenant));
    let due = [...new Set([...unseen, ...(await this.sealer.agenda(tenants))])];
    while (due.length > 0) {
      const unfinished: string[] = [];
      for (const tenant of due) {
        if (this.stopping.aborted) return;
        if (await this.sealNext(tenant)) unfinished.push(tenant);
      }
      due = unfinished;
    }
  }

  /** Never throws: another tenant's log has nothing to do with it. */
  private async sealNext(tenant: string): Promise<boolean> {
    try {
      const isUnfinished = await this.sealer.seal(tenant);
      this.seen.add(tenant);
      if (this.reasons.delete(tenant)) this.log.info({ event: 'log-resumed', tenant });
      return isUnfinished;
    } catch (error) {
      this.seen.delete(tenant);
      if (!(error instanceof LogStopped)) {
        this.log.error(error);
      } else if (this.reasons.get(tenant) !== error.message) {
        this.reasons.set(tenant, error.message);
        this.log.error(error.message);
      }
      return false;
    }
  }
}
