import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createHash } from 'node:crypto';
import { canonicalJson, type JsonValue, parseStrictJson, sha256 } from '#key';
import { jsonValue } from './arbitraries.js';
import { describeVectors, vectorBytes, vectorFiles } from './vectors.js';

/** What arrives in spite of its type: from JavaScript, from a database driver, from a cast. */
function smuggled(value: unknown): JsonValue {
  const box: { value: JsonValue } = { value: null };
  Reflect.set(box, 'value', value);
  return box.value;
}

describeVectors('the vectors of RFC 8785', () => {
  test('all six are there', () => {
    expect(vectorFiles('jcs/input')).toHaveLength(6);
  });

  test.each(vectorFiles('jcs/input').map((file) => [file]))('%s gives the published text and bytes', (file) => {
    const canonical = canonicalJson(JSON.parse(vectorBytes('jcs/input', file).toString('utf8')));
    expect(canonical).toBe(vectorBytes('jcs/output', file).toString('utf8'));
    const hex = vectorBytes('jcs/outhex', file.replace('.json', '.txt')).toString('latin1').replace(/\s+/g, '');
    expect(Buffer.from(canonical).toString('hex')).toBe(hex);
  });

  test('strict parsing takes all of them but the one with a number that a double does not hold', () => {
    const refused = vectorFiles('jcs/input').flatMap((file) => {
      try {
        expect(parseStrictJson(vectorBytes('jcs/input', file))).toEqual(
          JSON.parse(vectorBytes('jcs/input', file).toString('utf8')),
        );
        return [];
      } catch (error) {
        return [`${file} ${String(error)}`];
      }
    });
    expect(refused).toEqual([
      expect.stringMatching(/^values\.json StrictJsonError: \/numbers\/0: .*333333333\.3333333,/),
    ]);
  });
});

describe('the canonical form', () => {
  test.each<[value: JsonValue, form: string]>([
    [null, 'null'],
    [-0, '0'],
    [1e21, '1e+21'],
    [1e-7, '1e-7'],
    ['\u0000\u0008\u001f\u007f\u2028/"\\', '"\\u0000\\b\\u001f\u007f\u2028/\\"\\\\"'],
    [{ b: 1, a: [{}, []], '': null }, '{"":null,"a":[{},[]],"b":1}'],
    [{ '10': 1, '9': 2, a: 3, A: 4 }, '{"10":1,"9":2,"A":4,"a":3}'],
    [{ '\ufb33': 1, '\u{1F600}': 2 }, '{"\u{1F600}":2,"\ufb33":1}'],
    [{ toJSON: 'data' }, '{"toJSON":"data"}'],
  ])('of %p is right', (value, form) => {
    expect(canonicalJson(value)).toBe(form);
  });

  test('of an object without a prototype is that of a plain one', () => {
    expect(canonicalJson(smuggled(Object.assign(Object.create(null), { b: 1, a: 2 })))).toBe('{"a":2,"b":1}');
  });

  test('of a value that is used twice has it twice', () => {
    const shared = { x: 1 };
    expect(canonicalJson({ a: shared, b: [shared, shared] })).toBe('{"a":{"x":1},"b":[{"x":1},{"x":1}]}');
  });

  test('is read back as the same value, and written again as the same text', () => {
    fc.assert(
      fc.property(jsonValue, (value) => {
        const form = canonicalJson(value);
        const again = parseStrictJson(Buffer.from(form));
        expect(again).toEqual(value);
        expect(canonicalJson(again)).toBe(form);
      }),
      { seed: 8785, numRuns: 2_000 },
    );
  });
});

describe('what has no canonical form', () => {
  const cycle: unknown[] = [];
  cycle.push({ a: cycle });

  test.each<[name: string, value: unknown, pointer: string]>([
    ['undefined', undefined, ''],
    ['an undefined member', { a: { b: undefined } }, '/a/b'],
    ['an undefined element', { a: [1, undefined] }, '/a/1'],
    ['a hole in an array', { a: Object.assign([], { length: 2 }) }, '/a/0'],
    ['a function', { a: () => 1 }, '/a'],
    ['a symbol', [Symbol('s')], '/0'],
    ['a member named by a symbol', { a: { [Symbol('s')]: 1 } }, '/a'],
    ['a bigint', { a: 1n }, '/a'],
    ['NaN', [0, NaN], '/1'],
    ['Infinity', { a: Infinity }, '/a'],
    ['-Infinity', { a: -Infinity }, '/a'],
    ['a Map', { a: new Map([['b', 1]]) }, '/a'],
    ['a Set', { a: new Set([1]) }, '/a'],
    ['a Date', { a: new Date(0) }, '/a'],
    ['a Buffer', { a: Buffer.from('x') }, '/a'],
    ['a boxed string', { a: Object('x') }, '/a'],
    ['an instance of a class', { a: new (class Money {})() }, '/a'],
    ['an own toJSON', { a: { toJSON: () => 1 } }, '/a'],
    ['an inherited toJSON', { a: Object.create(Object.assign(Object.create(null), { toJSON: () => 1 })) }, '/a'],
    ['an array with a toJSON', { a: Object.assign([1], { toJSON: () => 1 }) }, '/a'],
    ['a lone high surrogate', { 'a/b': 'x\ud800' }, '/a~1b'],
    ['a lone low surrogate', '\udc00', ''],
    ['a lone surrogate in a name', { a: { '\ud800': 1 } }, '/a/\ud800'],
    ['a value that contains itself', cycle, '/0/a'.repeat(250)],
  ])('%s: a TypeError that names the place', (_name, value, pointer) => {
    expect(() => canonicalJson(smuggled(value))).toThrow(TypeError);
    expect(() => canonicalJson(smuggled(value))).toThrow(`Not plain JSON at "${pointer}": `);
  });

  test('more than 500 levels', () => {
    const nested = (levels: number): JsonValue => {
      let value: JsonValue = null;
      for (let level = 0; level < levels; level++) value = [value];
      return value;
    };
    expect(canonicalJson(nested(500))).toBe('['.repeat(500) + 'null' + ']'.repeat(500));
    expect(() => canonicalJson(nested(501))).toThrow(TypeError);
    expect(() => canonicalJson(nested(1_000_000))).toThrow(TypeError);
  });
});

describe('the digest', () => {
  test('is SHA-256 of the bytes, or of the UTF-8 of a text', () => {
    const expected = createHash('sha256').update('é\u{1F600}').digest();
    expect(sha256('é\u{1F600}')).toEqual(expected);
    expect(sha256(Buffer.from('é\u{1F600}'))).toEqual(expected);
    expect(sha256(new Uint8Array(0)).toString('hex')).toBe(
      'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    );
  });

  test('of a text with a lone surrogate is refused, for UTF-8 would make it U+FFFD', () => {
    expect(() => sha256('a\ud800')).toThrow(TypeError);
  });
});
