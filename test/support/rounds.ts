import { setTimeout as sleep } from 'node:timers/promises';
import { jest } from '@jest/globals';

const POLL_MS = 5;

/** Whether the whole of the long tests runs, or a tenth of it with the same seeds. */
export const IS_LONG = process.env['TEST_LONG'] === '1';

// Whoever counts in rounds gets the time for them.
jest.setTimeout(IS_LONG ? 1_800_000 : 180_000);

export function rounds(whole: number): number {
  return IS_LONG ? whole : Math.ceil(whole / 10);
}

/** Numbers from 0 up to 1 that are the same at every run (Mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Looks again and again until something is there. An error while looking, as from a server that restarts, is "not yet". */
export async function until<T>(
  what: string,
  look: () => Promise<T | null | undefined | false>,
  deadlineMs = 15_000,
): Promise<T> {
  let last: unknown = 'nothing';
  for (const end = performance.now() + deadlineMs; performance.now() < end; await sleep(POLL_MS)) {
    try {
      const found = await look();
      if (found !== null && found !== undefined && found !== false) return found;
    } catch (error) {
      last = error;
    }
  }
  throw new Error(`In vain: ${what} (last: ${String(last)})`);
}
