import { LogError } from './log-error.js';
import { HASH_BYTES } from './merkle.js';
import { decodeBase64 } from './note-key.js';

/**
 * A receipt: that an entry is in the log at this index, proved against the checkpoint that it carries. Written as the C2SP
 * specification tlog-proof says, and complete in itself: it can be verified years later without the service.
 */
export interface Receipt {
  readonly index: number;
  /** From the leaf's sibling up to the root's child. */
  readonly hashes: readonly Uint8Array[];
  /** The signed note, byte for byte. */
  readonly checkpoint: string;
}

const HEADER = 'c2sp.org/tlog-proof@v1';

/** A tree of 2^63 leaves has so many levels under its root. */
const MAX_HASHES = 63;

export function formatReceipt({ index, hashes, checkpoint }: Receipt): string {
  const lines = hashes.map((hash) => `${Buffer.from(hash).toString('base64')}\n`);
  return `${HEADER}\nindex ${index}\n${lines.join('')}\n${checkpoint}`;
}

/**
 * The parts of a receipt. Nothing is verified. A line `extra`, which the format allows and this service does not write, is
 * left out: it is covered by no signature.
 *
 * @throws LogError if it is ill-formed
 */
export function parseReceipt(text: string): Receipt {
  const split = text.indexOf('\n\n');
  const [header, ...lines] = text.slice(0, Math.max(split, 0)).split('\n');
  if (header !== HEADER) throw new LogError(`This is no receipt: its first line is not "${HEADER}".`);
  const extra = lines[0]?.startsWith('extra ') === true ? lines.shift()?.slice('extra '.length) : undefined;
  decodeBase64(extra ?? '');
  const [, index] = /^index (0|[1-9][0-9]{0,15})$/.exec(lines.shift() ?? '') ?? [];
  if (!Number.isSafeInteger(Number(index))) throw new LogError('The receipt does not say an index.');
  const hashes = lines.map(decodeBase64);
  if (hashes.length > MAX_HASHES || hashes.some(({ length }) => length !== HASH_BYTES))
    throw new LogError('The hashes of the receipt are ill-formed.');
  return { index: Number(index), hashes, checkpoint: text.slice(split + 2) };
}
