import type { JsonValue } from './json-value.js';
import { StrictJsonError, StrictScan } from './strict-scan.js';

/** How many arrays and objects may be inside one another; the outermost is the first. */
const DEFAULT_MAX_DEPTH = 64;

/** The byte order mark is kept in the text, where it is a syntax error, rather than dropped in silence. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The value of a JSON text (RFC 8259), if it is one that every reader understands in the same way (I-JSON, RFC 7493) and
 * that RFC 8785 can write without loss.
 *
 * Refused, each with its place: bytes that are not UTF-8, a byte order mark, syntax errors, an empty text, a member name
 * that is there twice (after unescaping), lone surrogates, U+0000, integer literals outside ±(2^53−1), numbers whose decimal
 * value differs from that of their RFC 8785 form, and more than `maxDepth` arrays and objects inside one another. The first
 * fault in the text is the one that is reported.
 *
 * The scan decides, `JSON.parse` builds: it is several times faster at that than code in JavaScript, and safe with a member
 * named `__proto__`. The time is linear in the length, the stack is not used for depth.
 *
 * @param bytes the text as it came, of any length
 * @param limits `maxDepth`: 64 unless told otherwise; 0 allows scalars only
 * @throws StrictJsonError and nothing else
 */
export function parseStrictJson(bytes: Uint8Array, limits: { maxDepth?: number } = {}): JsonValue {
  const maxDepth = limits.maxDepth ?? DEFAULT_MAX_DEPTH;
  if (bytes.length === 0) throw new StrictJsonError('', 'The JSON text is empty.');
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    throw new StrictJsonError('', 'The JSON text begins with a byte order mark.');
  }
  const text = decode(bytes, maxDepth);
  new StrictScan(text, maxDepth).run();
  return JSON.parse(text);
}

function decode(bytes: Uint8Array, maxDepth: number): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw notUtf8(bytes, maxDepth);
  }
}

/**
 * The place of the first bad byte: what is before it is scanned as a text of its own, and the place where that breaks off
 * is the place of the bad byte. A fault before its end comes first.
 */
function notUtf8(bytes: Uint8Array, maxDepth: number): StrictJsonError {
  const end = firstBadByte(bytes);
  const detail = `The bytes are not UTF-8 at byte ${end}.`;
  const scan = new StrictScan(utf8.decode(bytes.subarray(0, end)), maxDepth);
  try {
    scan.run();
    return new StrictJsonError('', detail);
  } catch (error) {
    if (!(error instanceof StrictJsonError)) throw error;
    return scan.isAtEnd ? new StrictJsonError(error.pointer, detail) : error;
  }
}

/** A lenient decoder puts U+FFFD for what is bad, so that the first byte which does not survive the round trip is there. */
function firstBadByte(bytes: Uint8Array): number {
  const survived = Buffer.from(Buffer.from(bytes).toString('utf8'), 'utf8');
  let at = 0;
  while (at < bytes.length && bytes[at] === survived[at]) at++;
  // A bad sequence may begin as U+FFFD does, with EF or EF BF, and then differ only later.
  if (bytes[at - 1] === 0xef) return at - 1;
  return bytes[at - 2] === 0xef && bytes[at - 1] === 0xbf ? at - 2 : at;
}
