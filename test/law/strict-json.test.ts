import { describe, expect, test } from '@jest/globals';
import { canonicalJson, parseStrictJson, StrictJsonError } from '#key';

const bytes = (text: string): Buffer => Buffer.from(text, 'utf8');

function refusal(input: Uint8Array | string, limits?: { maxDepth?: number }): StrictJsonError {
  try {
    parseStrictJson(typeof input === 'string' ? bytes(input) : input, limits);
  } catch (error) {
    if (error instanceof StrictJsonError) return error;
    throw error;
  }
  throw new Error('accepted');
}

describe('what strict parsing refuses, and which place it names', () => {
  const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

  test.each<[name: string, input: Uint8Array | string, pointer: string, detail: RegExp]>([
    ['nothing at all', '', '', /empty/],
    ['white space alone', ' \r\n\t ', '', /^Expected a value at byte 5, found the end of the text\.$/],
    ['a byte order mark', Buffer.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d]), '', /byte order mark/],
    ['a byte order mark inside', '{"a":\ufeff1}', '/a', /Expected a value at byte 5/],
    ['UTF-16', Buffer.from('{"a":1}', 'utf16le'), '', /Expected a member name/],

    ['a byte that UTF-8 does not have', Buffer.from([0x22, 0xff, 0x22]), '', /UTF-8 at byte 1\b/],
    ['a truncated sequence', Buffer.from([0x22, 0xe2, 0x82, 0x22]), '', /UTF-8 at byte 1\b/],
    ['a sequence cut off by the end', Buffer.from([0x22, 0x61, 0xe2, 0x82]), '', /UTF-8 at byte 2\b/],
    ['an overlong sequence', Buffer.from([0x22, 0xc0, 0xaf, 0x22]), '', /UTF-8 at byte 1\b/],
    ['a code point beyond U+10FFFF', Buffer.from([0x22, 0xf4, 0x90, 0x80, 0x80, 0x22]), '', /UTF-8 at byte 1\b/],
    ['a sequence that begins as U+FFFD does', Buffer.from([0x22, 0xef, 0xbf, 0x22]), '', /UTF-8 at byte 1\b/],
    ['half of U+FFFD at the end', Buffer.from([0x22, 0xc3, 0xa9, 0xef]), '', /UTF-8 at byte 3\b/],
    ['a surrogate in UTF-8', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), '', /UTF-8 at byte 1\b/],
    [
      'bad UTF-8 deep inside, after a true U+FFFD',
      Buffer.concat([bytes('{"a\ufffd":[1,"\ufffd'), Buffer.from([0xff]), bytes('"]}')]),
      '/a\ufffd/1',
      /UTF-8 at byte 15\b/,
    ],
    ['bad UTF-8 in a member name', Buffer.concat([bytes('{"a":{"'), Buffer.from([0xff])]), '/a', /UTF-8 at byte 7\b/],
    ['bad UTF-8 after the value', Buffer.concat([bytes('{}'), Buffer.from([0xff])]), '', /UTF-8 at byte 2\b/],
    [
      'bad UTF-8 after an earlier fault, which comes first',
      Buffer.concat([bytes('{"a":1,"a":2}'), Buffer.from([0xff])]),
      '/a',
      /twice/,
    ],

    ['a second value', '{} {}', '', /Expected the end of the text at byte 3, found "\{"/],
    ['a trailing comma in an object', '{"a":1,}', '', /Expected a member name at byte 7, found "\}"/],
    ['a trailing comma in an array', '{"a":[1,]}', '/a/1', /Expected a value at byte 8, found "\]"/],
    ['a missing comma in an object', '{"x":{"a":1 "b":2}}', '/x', /Expected "," or "\}" at byte 12/],
    ['a missing comma in an array', '[[1 2]]', '/0', /Expected "," or "\]" at byte 4/],
    ['a missing colon', '{"a" 1}', '/a', /Expected ":" at byte 5/],
    ['a missing value', '{"a":{"b":}}', '/a/b', /Expected a value at byte 10/],
    ['a name without quotes', '{"a":[0,{b:1}]}', '/a/1', /Expected a member name/],
    ['the wrong bracket', '{"a":[1}}', '/a', /Expected "," or "\]"/],
    ['an open array', '{"a":[1,[2', '/a/1', /Expected "," or "\]" at byte 10, found the end/],
    ['an open object', '{"a":{', '/a', /Expected a member name at byte 6, found the end/],
    ['an open string', '{"a":"b', '/a', /string is not closed/],
    ['an open member name', '{"a":{"b', '/a', /string is not closed/],
    ['a string ending in a backslash', '"\\', '', /Expected an escape/],
    ['single quotes', "{'a':1}", '', /Expected a member name/],
    ['a comment', '{"a":1/**/}', '', /found "\/"/],
    ['a raw line feed in a string', '["a\nb"]', '/0', /U\+000A .*escaped/],
    ['a raw tab in a member name', '{"a\tb":1}', '', /U\+0009 .*escaped/],
    ['a raw NUL in a string', '["\0"]', '/0', /U\+0000/],
    ['a raw NUL outside a string', '[\0]', '/0', /Expected a value at byte 1, found U\+0000/],
    ['an unknown escape', '["\\x41"]', '/0', /Expected an escape/],
    ['a short \\u escape', '["\\u12"]', '/0', /Expected four hexadecimal digits/],
    ['a \\u escape at the end', '["\\u', '/0', /Expected four hexadecimal digits/],
    ['a letter beyond F in a \\u escape', '["\\u00g0"]', '/0', /Expected four hexadecimal digits/],
    ['a signed \\u escape', '["\\u+123"]', '/0', /Expected four hexadecimal digits/],
    ['a foreign space', '[\u00a01]', '/0', /Expected a value/],
    ['NaN', '[NaN]', '/0', /Expected a value/],
    ['Infinity', '[-Infinity]', '/0', /Expected a digit/],
    ['True', 'True', '', /Expected a value/],
    ['half a literal', '[nul]', '/0', /Expected a value/],
    ['a literal too long', '[nulls]', '', /Expected "," or "\]"/],

    ['a leading zero', '[01]', '', /Expected "," or "\]" at byte 2/],
    ['a leading plus', '[+1]', '/0', /Expected a value/],
    ['a minus alone', '[-]', '/0', /Expected a digit/],
    ['a leading point', '[.5]', '/0', /Expected a value/],
    ['a trailing point', '[1.]', '/0', /Expected a digit at byte 3/],
    ['an exponent without digits', '[1e+]', '/0', /Expected a digit at byte 4/],
    ['a hexadecimal number', '[0x10]', '', /Expected "," or "\]"/],

    ['a duplicate member', '{"a":1,"a":1}', '/a', /twice/],
    ['a duplicate that differs only in escapes', '{"o":{"A":1,"\\u0041":2}}', '/o/A', /twice/],
    ['a duplicate with escapes of surrogates', '{"\u{1F600}":1,"\\uD83D\\ude00":2}', '/\u{1F600}', /twice/],
    ['a duplicate __proto__', '{"__proto__":1,"__proto__":2}', '/__proto__', /twice/],
    ['a duplicate empty name', '{"":1,"":2}', '/', /twice/],
    ['a duplicate name that a pointer must escape', '[{"~/":1,"~/":2}]', '/0/~0~1', /twice/],
    ['a duplicate after a nested object of the same name', '{"a":{"a":1},"a":2}', '/a', /twice/],

    ['a lone high surrogate', '["\\ud800"]', '/0', /lone surrogate/],
    ['a lone low surrogate', '["\\uDC00"]', '/0', /lone surrogate/],
    ['surrogates the wrong way round', '["\\udc00\\ud800"]', '/0', /lone surrogate/],
    ['two high surrogates', '["\\ud800\\ud800\\udc00"]', '/0', /lone surrogate/],
    ['a high surrogate before the last of its own kind', '["\\ud800\\udbff"]', '/0', /lone surrogate/],
    ['two low surrogates', '["\\udc00\\udc00"]', '/0', /lone surrogate/],
    ['a high surrogate before a letter', '["\\ud800a"]', '/0', /lone surrogate/],
    ['a high surrogate before another escape', '["\\ud800\\n"]', '/0', /lone surrogate/],
    ['a lone surrogate in a member name', '{"a":{"\\ud800":1}}', '/a', /lone surrogate/],
    ['an escaped U+0000', '{"a":"x\\u0000"}', '/a', /U\+0000/],
    ['an escaped U+0000 in a member name', '[{"\\u0000":1}]', '/0', /U\+0000/],

    ['2^53', '{"a":9007199254740992}', '/a', /integer .*2\^53/],
    ['-2^53', '{"a":-9007199254740992}', '/a', /integer .*2\^53/],
    ['2^53 + 1, which a parser would round', '[9007199254740993]', '/0', /integer .*2\^53/],
    ['ten to the 16th in digits', '[10000000000000000]', '/0', /integer .*2\^53/],
    ['an integer of 400 digits', `[${'9'.repeat(400)}]`, '/0', /integer .*2\^53/],
    ['a fraction with more digits than a double holds', '[0.30000000000000000001]', '/0', /another value/],
    ['2^53 + 1 with a fraction', '[9007199254740993.0]', '/0', /another value/],
    ['2^53 + 1 with an exponent', '[9007199254740993e0]', '/0', /another value/],
    ['a number beyond the doubles', '[1e400]', '/0', /another value/],
    ['a negative number beyond the doubles', '[-1e400]', '/0', /another value/],
    ['the next decade after the largest double', '[1.7976931348623157e309]', '/0', /another value/],
    ['a number that rounds to zero', '[1e-400]', '/0', /another value/],
    ['a number that rounds to the least double', '[4.9e-324]', '/0', /another value/],
    ['an exponent beyond all bounds', '[1e99999999999999999999]', '/0', /another value/],
    ['a negative exponent beyond all bounds', '[1e-99999999999999999999]', '/0', /another value/],
    ['a double written out in full', '[0.1000000000000000055511151231257827]', '/0', /another value/],

    ['the 65th container', deep(65), '/0'.repeat(64), /64/],
    ['the 65th container, an object', '{"a":'.repeat(65) + '1' + '}'.repeat(65), '/a'.repeat(64), /64/],
  ])('%s', (_name, input, pointer, detail) => {
    const error = refusal(input);
    expect(error.pointer).toBe(pointer);
    expect(error.detail).toMatch(detail);
    expect(error.detail).toMatch(/^[A-Z].*\.$/s);
    expect(error.message).toContain(error.detail);
  });

  test('the depth limit may be set, and the outermost container counts as the first', () => {
    expect(parseStrictJson(bytes('[{"a":1}]'), { maxDepth: 2 })).toEqual([{ a: 1 }]);
    expect(refusal('[{"a":[]}]', { maxDepth: 2 }).pointer).toBe('/0/a');
    expect(parseStrictJson(bytes('1'), { maxDepth: 0 })).toBe(1);
    expect(refusal('{}', { maxDepth: 0 }).pointer).toBe('');
  });
});

describe('what strict parsing accepts', () => {
  test.each<[text: string]>([
    ['null'],
    ['true'],
    [' [ ] '],
    ['\t{\r\n}\n'],
    ['""'],
    ['"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\uDE00\u{1F600}\u007f\u2028\ufeff\ufffd"'],
    ['[[[],{}],{"a":{"b":[true,false,null]}}]'],
    ['{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}'],
    ['['.repeat(64) + ']'.repeat(64)],
    ['{"constructor":1,"toString":2,"hasOwnProperty":3,"toJSON":4,"length":5}'],
    ['[0,-0,-0.0,0.0e99999999999999999999,0e-7,1,1.0,1e2,10.50,0.1,-1.5E-3]'],
    ['[9007199254740991,-9007199254740991]'],
    ['[9007199254740992.0,1e16,1e21,1E+21,123456789012345680000e0]'],
    ['[5e-324,2.2250738585072014e-308,1.7976931348623157e308,0.1000000000000000000000000]'],
    ['[0.30000000000000004,1.0000000000000002,333333333.3333333,0.000001,1e-7]'],
    [`[1${'0'.repeat(400)}e-400,0.${'0'.repeat(400)}1e401]`],
  ])('%s', (text) => {
    expect(parseStrictJson(bytes(text))).toEqual(JSON.parse(text));
  });

  test('a member named __proto__ is data: own, canonicalised, and without effect on any prototype', () => {
    const value = parseStrictJson(
      bytes('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}'),
    );
    expect(Object.keys(value ?? {})).toEqual(['__proto__', 'constructor']);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect('polluted' in {}).toBe(false);
    expect(canonicalJson(value)).toBe('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}');
  });

  test('a view into a larger buffer is read within its bounds', () => {
    const whole = bytes('xx{"a":1}yy');
    expect(parseStrictJson(whole.subarray(2, 9))).toEqual({ a: 1 });
    expect(parseStrictJson(new Uint8Array(whole.buffer, whole.byteOffset + 2, 7))).toEqual({ a: 1 });
  });
});

describe('time grows with the size of the text and the stack does not', () => {
  const size = 4 * 1024 * 1024;
  const fill = (unit: string): string => unit.repeat(Math.floor(size / unit.length));
  const members = (name: (i: number) => string): string =>
    `{${Array.from({ length: 250_000 }, (_, i) => `"${name(i)}":${i}`).join(',')}}`;

  test.each<[name: string, text: string, accepted: boolean]>([
    ['256 KiB of opening brackets', '['.repeat(256 * 1024), false],
    ['4 MiB of opening brackets', '['.repeat(size), false],
    ['4 MiB of opening objects', fill('{"a":'), false],
    ['4 MiB of white space', ' '.repeat(size), false],
    ['4 MiB of backslashes', `"${'\\'.repeat(size)}"`, true],
    ['4 MiB of escapes', `"${fill('\\u0041')}"`, true],
    ['4 MiB of lone quotes', '"'.repeat(size), false],
    ['250,000 members', members((i) => `m${i}`), true],
    ['250,000 members named by integers', members((i) => `${i * 7}`), true],
    ['250,000 members with escapes', members((i) => `\\u0041${i}`), true],
    ['800,000 small numbers', `[${fill('1.25,').slice(0, -1)}]`, true],
    ['200,000 numbers of full precision', `[${fill('0.1234567890123456,').slice(0, -1)}]`, true],
    ['an integer of 4 MiB', '1'.repeat(size), false],
    ['a fraction of 4 MiB of zeros', `0.${'0'.repeat(size)}`, true],
    ['a fraction of 4 MiB of zeros before a one', `1.${'0'.repeat(size)}1`, false],
    ['an exponent of 4 MiB', `1e${'0'.repeat(size)}2`, true],
    ['500,000 small objects', `[${fill('{"a":1},').slice(0, -1)}]`, true],
    ['2,000,000 letters of two bytes', `"${'é'.repeat(size / 2)}"`, true],
  ])('%s', (_name, text, accepted) => {
    const input = bytes(text);
    const before = process.hrtime.bigint();
    if (accepted) parseStrictJson(input);
    else refusal(input);
    // Quadratic time would take minutes here; the bound is far above linear time on a slow machine.
    expect(Number(process.hrtime.bigint() - before) / 1e6).toBeLessThan(5_000);
  });

  test('4 MiB whose last byte is bad UTF-8', () => {
    const input = Buffer.concat([bytes(`["${'é'.repeat(size / 2)}`), Buffer.from([0xff])]);
    expect(refusal(input)).toMatchObject({ pointer: '/0', detail: expect.stringContaining(`byte ${size + 2}`) });
  });
});
