const MAX_LENGTH = 255;

/** Two quotes, and each character escaped. Longer values are turned away before a regular expression walks over them. */
const MAX_ENCODED_LENGTH = 2 + 2 * MAX_LENGTH;

/** RFC 9651, section 3.3.3: printable ASCII, where a quote and a backslash are escaped by a backslash, and nothing else is. */
const STRING = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/;

/** What may stand without quotes: printable ASCII except space, comma, semicolon, quote and backslash. */
const BARE = /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]+$/;

const PRINTABLE = /^[\x20-\x7e]*$/;

/** A key or an `Idempotency-Key` header that is not one. `detail` is a sentence that does not repeat the value. */
export class InvalidIdempotencyKey extends Error {
  override readonly name = 'InvalidIdempotencyKey';

  constructor(readonly detail: string) {
    super(detail);
  }
}

/**
 * The key that an `Idempotency-Key` header carries: an RFC 9651 String (`"k1"`) with its escapes decoded, or the same
 * characters bare (`k1`). White space around the value is not part of it (RFC 9110, section 5.5).
 *
 * Stricter than RFC 9651, section 4.2: no parameters, and the key must pass {@link checkKey}. Looser: a bare key need be
 * neither a Token nor a number.
 *
 * @param headerValue one field line's value. Two lines that were joined can look like one String; who calls must see to it
 * that the header came once.
 * @throws InvalidIdempotencyKey
 */
export function parseIdempotencyKey(headerValue: string): string {
  const value = trimOptionalWhitespace(headerValue);
  if (value === '') throw new InvalidIdempotencyKey('The key is empty.');
  if (value.length > MAX_ENCODED_LENGTH) throw tooLong();
  const quoted = STRING.exec(value)?.[1];
  if (quoted !== undefined) return checkKey(quoted.replace(/\\(.)/g, '$1'));
  if (value.startsWith('"')) {
    throw new InvalidIdempotencyKey(
      'A key in quotes is one RFC 9651 String: printable ASCII, with only quotes and backslashes escaped, and nothing behind it.',
    );
  }
  if (!BARE.test(value)) {
    throw new InvalidIdempotencyKey(
      'A key without quotes is printable ASCII without space, comma, semicolon, quote and backslash.',
    );
  }
  return checkKey(value);
}

/**
 * The value itself, if it can be a key: 1–255 characters of printable ASCII (U+0020 to U+007E), no space at either end, not
 * "." or "..", which would be lost in a path.
 *
 * @param value the key's own characters, without quotes or escapes, as a JSON body carries them
 * @throws InvalidIdempotencyKey
 */
export function checkKey(value: string): string {
  if (value === '') throw new InvalidIdempotencyKey('The key is empty.');
  if (value.length > MAX_LENGTH) throw tooLong();
  if (!PRINTABLE.test(value)) throw new InvalidIdempotencyKey('The key has a character that is not printable ASCII.');
  if (value.startsWith(' ') || value.endsWith(' ')) {
    throw new InvalidIdempotencyKey('The key begins or ends with a space.');
  }
  if (value === '.' || value === '..') throw new InvalidIdempotencyKey('The key must not be "." or "..".');
  return value;
}

function tooLong(): InvalidIdempotencyKey {
  return new InvalidIdempotencyKey(`The key is longer than ${MAX_LENGTH} characters.`);
}

/** OWS (RFC 9110, section 5.6.3) is space and tab only; `trim` would also drop what must be refused. */
function trimOptionalWhitespace(value: string): string {
  let from = 0;
  let to = value.length;
  while (from < to && isSpaceOrTab(value.charAt(from))) from++;
  while (to > from && isSpaceOrTab(value.charAt(to - 1))) to--;
  return value.slice(from, to);
}

function isSpaceOrTab(character: string): boolean {
  return character === ' ' || character === '\t';
}
