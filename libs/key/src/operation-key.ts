import { sha256 } from './canonical.js';

const UNIT_SEPARATOR = '\u001f';

/**
 * The identity of an operation by its parts: SHA-256 over the parts, each NFC-normalised (UAX #15) and trimmed of white
 * space, joined by U+001F; as 64 lower-case hex digits.
 *
 * @param parts at least one
 * @throws TypeError if there is no part, or one is blank or contains U+001F (with either, two lists could be one text), or
 * has a lone surrogate
 */
export function operationKey(parts: readonly string[]): string {
  const prepared = prepare(parts);
  for (const [index, part] of prepared.entries()) {
    if (part === '') throw new TypeError(`Part ${index} of the operation is blank.`);
    if (parts[index]?.includes(UNIT_SEPARATOR)) throw new TypeError(`Part ${index} of the operation contains U+001F.`);
  }
  return sha256(prepared.join(UNIT_SEPARATOR)).toString('hex');
}

/**
 * As {@link operationKey}, for parts that may be blank or contain any character: each part is preceded by its length in
 * UTF-8 bytes, in decimal, and a colon, so that the boundaries can be read back. The two functions never give one key for
 * one list.
 *
 * @param parts at least one
 * @throws TypeError if there is no part, or one has a lone surrogate
 */
export function operationKeyLengthPrefixed(parts: readonly string[]): string {
  const framed = prepare(parts).map((part) => `${Buffer.byteLength(part)}:${part}`);
  return sha256(framed.join('')).toString('hex');
}

function prepare(parts: readonly string[]): string[] {
  if (parts.length === 0) throw new TypeError('An operation has at least one part.');
  return parts.map((part) => part.normalize('NFC').trim());
}
