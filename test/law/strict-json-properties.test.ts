import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { canonicalJson, type JsonValue, parseStrictJson, StrictJsonError } from '#key';
import { jsonValue, spelling } from './arbitraries.js';

/** A fixed seed: a run in CI fails where a run at a desk fails. */
const runs = (numRuns: number): fc.Parameters<unknown> => ({ seed: 20261130, numRuns });

/** The value, or null and the reason if it was refused; whatever else is thrown fails the test. */
function attempt(bytes: Uint8Array): { value: JsonValue } | StrictJsonError {
  try {
    return { value: parseStrictJson(bytes) };
  } catch (error) {
    if (error instanceof StrictJsonError) return error;
    throw error;
  }
}

/** What a `JSON.parse` of the same bytes gives, or undefined if it refuses them. */
function nativeParse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

const anyBytes = fc.uint8Array({ maxLength: 200 });

/** Mostly JSON: pieces of the grammar in any order, so that deep and nearly right texts turn up. */
const pieces = String.raw`{ } [ ] , : " "a" "b": {"a": \ \u 00 d800 \ud83d\ude00 \u0000 0 1 - . e + 01 1e5 0.1
  9007199254740993 true false null / é __proto__`.split(/\s+/);
const piece = fc.constantFrom(...pieces, ' ', '\n', '\t', '\0', '\u{1F600}', '\ufeff');
const shards = fc.array(piece, { maxLength: 30 }).map((pieces) => Buffer.from(pieces.join('')));

/** A good text with one byte put in, taken out or changed. */
const damaged = fc
  .tuple(jsonValue, fc.nat(), fc.nat(255), fc.constantFrom(0, 1), fc.constantFrom(0, 1))
  .map(([value, place, byte, remove, insert]) => {
    const bytes = Buffer.from(JSON.stringify(value));
    const at = place % bytes.length;
    return Buffer.concat([bytes.subarray(0, at), Buffer.alloc(insert, byte), bytes.subarray(at + remove)]);
  });

describe('strict parsing of any bytes', () => {
  test.each<[name: string, bytes: fc.Arbitrary<Uint8Array>]>([
    ['random bytes', anyBytes],
    ['shards of JSON', shards],
    ['damaged JSON', damaged],
  ])(
    '%s: throws StrictJsonError or gives what JSON.parse gives, and nothing that JSON.parse refuses',
    (_name, input) => {
      fc.assert(
        fc.property(input, (bytes) => {
          const result = attempt(bytes);
          if (result instanceof StrictJsonError) expect(result.pointer).toMatch(/^(\/([^~/]|~[01])*)*$/u);
          else {
            expect(result.value).toEqual(nativeParse(bytes));
            const canonical = canonicalJson(result.value);
            expect(canonicalJson(JSON.parse(canonical))).toBe(canonical);
          }
        }),
        runs(5_000),
      );
    },
  );

  test('what JSON.parse takes is refused for one of the few reasons beyond syntax only', () => {
    const reasons = /twice|lone surrogate|U\+0000|integer is outside|another value|arrays and objects/;
    fc.assert(
      fc.property(fc.oneof(shards, damaged), (bytes) => {
        const result = attempt(bytes);
        if (result instanceof StrictJsonError && nativeParse(bytes) !== undefined) {
          expect(result.detail).toMatch(reasons);
        }
      }),
      runs(5_000),
    );
  });

  test('every spelling of a value is accepted and means the value', () => {
    fc.assert(
      fc.property(jsonValue, fc.infiniteStream(fc.nat(0xffff)), (value, choices) => {
        const text = spelling(value, choices);
        const parsed = parseStrictJson(Buffer.from(text));
        expect(canonicalJson(parsed)).toBe(canonicalJson(value));
      }),
      runs(2_000),
    );
  });
});
