import type { Database } from '#database';

/** Enough to be fast, and so few that no transaction is long. */
const BATCH = 2_000;

/** Copies what was recorded to where the reading side looks for it. Until then it is read from where it was recorded. */
export class ReadingCopy {
  constructor(private readonly database: Database) {}

  /** Until nothing is left to copy, or the signal. Several may copy at once. */
  async copy(tenants: readonly string[], signal: AbortSignal): Promise<void> {
    let most = BATCH;
    while (most >= BATCH && !signal.aborted) {
      const [row] = await this.database.statement<{ most: number }>('SELECT copy_recorded($1, $2) AS most', [
        tenants,
        BATCH,
      ]);
      most = row?.most ?? 0;
    }
  }
}
