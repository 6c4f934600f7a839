import { randomFillSync } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';

const RANDOM_BYTES = 16;
/** Randomness for many ids is drawn at once: a draw costs more than everything else about an id. */
const pool = new Uint8Array(RANDOM_BYTES * 256);
let used = pool.length;

/** A new UUID that sorts by the time at which it was made, to the millisecond (RFC 9562, version 7). */
export function newId(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += RANDOM_BYTES;
  return uuidv7({ random: pool.subarray(used - RANDOM_BYTES, used) });
}
