import { type Checkpoint, openCheckpoint } from '../pure/checkpoint.js';
import { LogError } from '../pure/log-error.js';
import type { VerifierKey } from '../pure/note-key.js';
import type { Check } from './check.js';

/** The checkpoint of a note, or null if it cannot be believed: then the check has failed and says why. */
export function openFor(check: Check, note: string, keys: readonly VerifierKey[]): Checkpoint | null {
  try {
    const checkpoint = openCheckpoint(note, keys);
    check.ok();
    return checkpoint;
  } catch (error) {
    if (!(error instanceof LogError)) throw error;
    check.failed(error.message);
    return null;
  }
}
