import { Problem } from '#problem';

/**
 * How much of each tenant is taken and not recorded yet. There is an end to it: whoever comes later is sent away at once, with
 * nothing recorded, rather than left to wait for an answer that nobody waits for any more. Tenants do not share it, so that the
 * storm of one sends away nobody else.
 */
export class Backlog {
  private readonly sizes = new Map<string, number>();

  constructor(private readonly most: number) {}

  /** Does what records `count` decisions. @throws Problem `unavailable` if too many of the tenant wait already */
  async during<T>(tenant: string, count: number, work: () => Promise<T>): Promise<T> {
    if (this.sizeOf(tenant) >= this.most) throw overloaded();
    this.grow(tenant, count);
    try {
      return await work();
    } finally {
      this.grow(tenant, -count);
    }
  }

  private sizeOf(tenant: string): number {
    return this.sizes.get(tenant) ?? 0;
  }

  private grow(tenant: string, count: number): void {
    const size = this.sizeOf(tenant) + count;
    if (size === 0) this.sizes.delete(tenant);
    else this.sizes.set(tenant, size);
  }
}

const overloaded = (): Problem =>
  new Problem(
    'unavailable',
    'More decisions are waiting here than can be recorded soon; this one left nothing behind. Send the same request again with the same key.',
    { headers: { 'retry-after': '1' } },
  );
