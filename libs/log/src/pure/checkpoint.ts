import { EMPTY_ROOT, HASH_BYTES, isEqual } from './merkle.js';
import { LogError } from './log-error.js';
import { openNote, parseNote, signNote } from './note.js';
import { decodeBase64, type SignerKey, type VerifierKey } from './note-key.js';

/** The head of a log's tree at one moment, as the C2SP specification tlog-checkpoint writes it. */
export interface Checkpoint {
  /** Which log: `<LOG_ORIGIN>/<tenant>`, also the name of its keys. */
  readonly origin: string;
  readonly size: number;
  readonly root: Uint8Array;
}

const SIZE = /^(?:0|[1-9][0-9]{0,15})$/;

/** The signed note of a checkpoint: three lines, an empty one, a signature for each key. */
export function signCheckpoint({ origin, size, root }: Checkpoint, signers: readonly SignerKey[]): string {
  const text = `${origin}\n${size}\n${Buffer.from(root).toString('base64')}\n`;
  parseText(text);
  return signNote(text, signers);
}

/**
 * The checkpoint that the note says, if one of the keys has signed it. Keys are those of one log, whose name is its origin.
 *
 * @throws LogError if it is ill-formed, signed by none of the keys, wrongly signed, or of another log than the key's
 */
export function openCheckpoint(note: string, keys: readonly VerifierKey[]): Checkpoint {
  const { text, signedBy } = openNote(note, keys);
  const checkpoint = parseText(text);
  const stranger = signedBy.find(({ name }) => name !== checkpoint.origin);
  if (stranger !== undefined)
    throw new LogError(`The checkpoint is of ${checkpoint.origin}, but ${stranger.name} has signed it.`);
  return checkpoint;
}

/** What a note says that nobody has verified: good for knowing what to look at, and not to be believed. */
export function readCheckpoint(note: string): Checkpoint {
  return parseText(parseNote(note).text);
}

function parseText(text: string): Checkpoint {
  const [origin = '', size = '', root = '', ...rest] = text.split('\n');
  // Lines after the third are an extension that the specification allows and nobody here needs; none of them is empty.
  if (origin === '' || rest.pop() !== '' || rest.includes('')) throw new LogError('The checkpoint is ill-formed.');
  if (!SIZE.test(size) || !Number.isSafeInteger(Number(size))) throw new LogError(`${size} is no size of a tree.`);
  const checkpoint = { origin, size: Number(size), root: decodeBase64(root) };
  if (checkpoint.root.length !== HASH_BYTES) throw new LogError('The root is no SHA-256.');
  if (checkpoint.size === 0 && !isEqual(checkpoint.root, EMPTY_ROOT))
    throw new LogError('The root of the empty tree is not that.');
  return checkpoint;
}
