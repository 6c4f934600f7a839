import canonicalize from 'canonicalize';
import { hash } from 'node:crypto';
import { type JsonValue, pointerToken } from './json-value.js';

/** Far above what a request may hold, far below what the stack bears; a value that contains itself ends here too. */
const MAX_DEPTH = 500;

const LONE_SURROGATE = /\p{Surrogate}/u;

/** Why a value is no plain JSON, and where. */
interface Flaw {
  pointer: string;
  detail: string;
}

/**
 * The canonical form of a JSON value by RFC 8785 (JCS): members sorted by UTF-16 code units, no white space, numbers as
 * ECMAScript writes them, strings with the fewest escapes. Nothing is Unicode-normalised.
 *
 * The value is checked first, because a serialiser that drops an `undefined` member, empties a `Map` or obeys a `toJSON`
 * gives two different values one form.
 *
 * @throws TypeError naming the place, if the value is not plain JSON of at most 500 levels: `undefined`, a function, a
 * symbol, a bigint, a number that is not finite, a lone surrogate, an array with holes, an object with a prototype of its
 * own or a `toJSON`, a cycle
 */
export function canonicalJson(value: JsonValue): string {
  const flaw = findFlaw(value, 1);
  if (flaw !== null) throw new TypeError(`Not plain JSON at "${flaw.pointer}": ${flaw.detail}.`);
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError('The value has no canonical form.');
  return text;
}

/**
 * SHA-256 (FIPS 180-4), 32 bytes. A text is hashed as UTF-8.
 *
 * @throws TypeError if the text has a lone surrogate: UTF-8 cannot hold it, and what would be put in its place hashes alike
 */
export function sha256(text: string | Uint8Array): Buffer {
  if (typeof text === 'string' && LONE_SURROGATE.test(text)) throw new TypeError('A lone surrogate cannot be hashed.');
  return hash('sha256', text, 'buffer');
}

/** The pointer is put together on the way back, so that a value without a flaw costs no string. */
function findFlaw(value: unknown, depth: number): Flaw | null {
  switch (typeof value) {
    case 'string':
      return LONE_SURROGATE.test(value) ? flawHere('a lone surrogate') : null;
    case 'number':
      return Number.isFinite(value) ? null : flawHere(`the number ${value}`);
    case 'boolean':
      return null;
    case 'object':
      if (value === null) return null;
      if (depth > MAX_DEPTH) return flawHere(`more than ${MAX_DEPTH} levels, or a value that contains itself`);
      if ('toJSON' in value && typeof value.toJSON === 'function') return flawHere('an object with a toJSON method');
      return Array.isArray(value) ? findFlawInArray(value, depth) : findFlawInObject(value, depth);
    default:
      return flawHere(`a value of type ${typeof value}`);
  }
}

function findFlawInArray(array: readonly unknown[], depth: number): Flaw | null {
  // By index, not by iteration of what is there: a hole must be met as the undefined that it reads as.
  for (let index = 0; index < array.length; index++) {
    const flaw = findFlaw(array[index], depth + 1);
    if (flaw !== null) return flawWithin(index, flaw);
  }
  return null;
}

function findFlawInObject(object: object, depth: number): Flaw | null {
  const prototype: unknown = Object.getPrototypeOf(object);
  // A plain object of another realm has another Object.prototype, but that one too inherits from nothing.
  const isPlain = prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
  if (!isPlain) return flawHere('an object that is not plain');
  if (Object.getOwnPropertySymbols(object).length > 0) return flawHere('a member named by a symbol');
  for (const [name, member] of Object.entries(object)) {
    const flaw = LONE_SURROGATE.test(name) ? flawHere('a lone surrogate in a name') : findFlaw(member, depth + 1);
    if (flaw !== null) return flawWithin(name, flaw);
  }
  return null;
}

function flawHere(detail: string): Flaw {
  return { pointer: '', detail };
}

function flawWithin(step: string | number, flaw: Flaw): Flaw {
  return { pointer: pointerToken(step) + flaw.pointer, detail: flaw.detail };
}
