import { sha256 } from './canonical.js';

const SHOWN_CHARACTERS = 12;
const SHOWN_HASH_DIGITS = 16;

/** Enough of a key to find it by in a log, and never all of it: a key may open what it names somewhere else. */
export function shownKey(key: string): { key: string; keyHash: string } {
  return {
    key: key.slice(0, Math.min(SHOWN_CHARACTERS, Math.floor(key.length / 2))),
    keyHash: sha256(key).toString('hex').slice(0, SHOWN_HASH_DIGITS),
  };
}
