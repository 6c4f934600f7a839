import type { JsonObject, JsonValue } from '#key';
import { verifyConsistency } from '../pure/merkle.js';
import type { VerifierKey } from '../pure/note-key.js';
import { Check } from './check.js';
import { openFor } from './head.js';

export interface ConsistencyOptions {
  readonly keys: readonly VerifierKey[];
  /** The answer of `GET /v1/log/proofs/consistency`; two checkpoints of one size need none. */
  readonly proof: JsonObject | null;
}

/** Checks that the log of an earlier checkpoint is the beginning of the log of a later one. */
export function verifyCheckpoints(earlier: string, later: string, { keys, proof }: ConsistencyOptions): Check[] {
  const [first, second, consistency] = [new Check('earlier'), new Check('later'), new Check('consistency')];
  const checks = [first, second, consistency];
  const [a, b] = [openFor(first, earlier, keys), openFor(second, later, keys)];
  if (a === null || b === null) return checks;
  if (a.origin !== b.origin) {
    consistency.failed(`One is of ${a.origin}, the other of ${b.origin}`);
  } else if (a.size > b.size) {
    consistency.failed(`The log had ${a.size} entries, and has ${b.size}: it was cut off or put back`);
  } else if (proof === null && a.size !== b.size && a.size > 0) {
    consistency.notChecked('No proof was given');
  } else if (a.size === 0) {
    // The tree without entries is the beginning of every tree, which takes no proof.
    consistency.ok();
  } else {
    const roots = { firstRoot: a.root, secondRoot: b.root };
    const isProved = verifyConsistency({ first: a.size, second: b.size, ...roots, hashes: hashesOf(proof) });
    consistency.ruledBy(isProved ? [] : [`The first ${a.size} of the ${b.size} entries are not those from earlier`]);
  }
  return checks;
}

/** What is no hash in hex comes out as one of no bytes, which proves nothing. */
function hashesOf(proof: JsonObject | null): Buffer[] {
  const hashes: JsonValue = proof?.['hashes'] ?? [];
  return (Array.isArray(hashes) ? hashes : [hashes]).map((hash) =>
    Buffer.from(typeof hash === 'string' && /^[0-9a-f]{64}$/.test(hash) ? hash : '', 'hex'),
  );
}
