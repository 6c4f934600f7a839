import { LRUCache } from 'lru-cache';

/** A change made on another instance is seen within this time: half of the second that is promised. */
const BRIEFLY_MS = 500;
const CACHE_SIZE = 10_000;

/** A value that was read, and for how long it may be used: at most {@link BRIEFLY_MS}, which is also the default. */
export interface BriefValue<V> {
  readonly value: V;
  readonly ttlMs?: number | undefined;
}

/**
 * Values of the database that every request needs, kept for half a second. Requests that ask for the same key together
 * share one read. Absence is not kept.
 */
export class BriefCache<V extends object> {
  private readonly values = new LRUCache<string, V>({ max: CACHE_SIZE });
  private readonly reads = new Map<string, Promise<V | null>>();

  constructor(private readonly read: (key: string) => Promise<BriefValue<V> | null>) {}

  async get(key: string): Promise<V | null> {
    return this.values.get(key) ?? this.reads.get(key) ?? this.load(key);
  }

  /** Forgets a value at once, also one that is being read: whoever asks next reads it again. */
  forget(key: string): void {
    this.values.delete(key);
    this.reads.delete(key);
  }

  private load(key: string): Promise<V | null> {
    // The time counts from before the read: a value may have been changed right after the database looked at it.
    const startedAt = performance.now();
    const reading: Promise<V | null> = this.read(key)
      .then((found) => {
        const ttl = Math.floor(Math.min(found?.ttlMs ?? BRIEFLY_MS, BRIEFLY_MS) - (performance.now() - startedAt));
        if (found !== null && ttl > 0 && this.reads.get(key) === reading) this.values.set(key, found.value, { ttl });
        return found?.value ?? null;
      })
      .finally(() => {
        if (this.reads.get(key) === reading) this.reads.delete(key);
      });
    this.reads.set(key, reading);
    return reading;
  }
}
