import { Injectable } from '@nestjs/common';
import { Database } from '#database';

/** Small enough that no batch holds its rows for long; the next one follows at once. */
const BATCH = 500;

/** The part of a key's life that time ends: its stored response. Its identity stays. */
@Injectable()
export class StoredResponses {
  constructor(private readonly database: Database) {}

  /** Removes the responses of a tenant whose time is over, and tells how many. Several may prune at once. */
  async prune(tenant: string): Promise<number> {
    let total = 0;
    for (;;) {
      const [row] = await this.database.statement<{ pruned: number }>('SELECT prune_responses($1, $2) AS pruned', [
        tenant,
        BATCH,
      ]);
      total += row?.pruned ?? 0;
      if ((row?.pruned ?? 0) < BATCH) return total;
    }
  }
}
