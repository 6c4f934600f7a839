import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parseItem, serializeString } from 'structured-headers';
import { checkKey, InvalidIdempotencyKey, parseIdempotencyKey } from '#key';
import { describeVectors, vectorBytes, vectorFiles } from './vectors.js';

interface FieldVector {
  name: string;
  raw: string[];
  header_type: string;
  expected?: [value: unknown, parameters: unknown[]];
  must_fail?: boolean;
  can_fail?: boolean;
}

function named(vector: FieldVector): [name: string, vector: FieldVector] {
  return [vector.name, vector];
}

/** The key, or null for a header that is refused. Whatever else is thrown fails the test. */
function parsed(header: string): string | null {
  try {
    return parseIdempotencyKey(header);
  } catch (error) {
    if (!(error instanceof InvalidIdempotencyKey)) throw error;
    expect(error.detail).toMatch(/^[A-Z].*\.$/);
    return null;
  }
}

function checked(value: string): string | null {
  try {
    return checkKey(value);
  } catch (error) {
    if (!(error instanceof InvalidIdempotencyKey)) throw error;
    return null;
  }
}

describeVectors('the vectors of RFC 9651', () => {
  const load = (file: string): FieldVector[] => JSON.parse(vectorBytes('structured-fields', file).toString('utf8'));
  const strings = [...load('string.json'), ...load('string-generated.json')];

  test('all files are known here', () => {
    expect(vectorFiles('structured-fields')).toEqual(['item.json', 'string-generated.json', 'string.json']);
    expect(strings.length).toBeGreaterThan(250);
  });

  // A header may also come bare, so what RFC 9651 refuses for want of quotes is a key here.
  const bare = strings.filter(({ raw }) => !raw[0]?.startsWith('"'));
  const quoted = strings.filter(({ raw }) => raw[0]?.startsWith('"'));

  test('the one string vector without double quotes is refused by RFC 9651 and is a bare key here', () => {
    expect(bare.map(({ name, must_fail }) => [name, must_fail])).toEqual([['single quoted string', true]]);
    expect(parsed("'foo'")).toBe("'foo'");
  });

  test.each(quoted.filter((v) => v.must_fail).map(named))('must fail: %s', (_name, vector) => {
    expect(parsed(vector.raw.join(', '))).toBeNull();
  });

  // Stricter than RFC 9651: 1–255 characters, no space at either end, not "." or "..". Most good vectors have such spaces,
  // so each is also taken without them: the characters between are decoded by the same rule.
  test.each(quoted.filter((v) => !v.must_fail).map(named))('good: %s', (_name, vector) => {
    const raw = vector.raw.join(', ');
    const value = String(vector.expected?.[0]);
    const trimmed = value.trim();
    const isKey = trimmed.length >= 1 && trimmed.length <= 255 && trimmed !== '.' && trimmed !== '..';
    expect(parsed(raw)).toBe(isKey && value === trimmed ? value : null);
    expect(parsed(`"${raw.slice(1, -1).trim()}"`)).toBe(isKey ? trimmed : null);
  });

  // RFC 9651 gives a parser no tabs around an item; HTTP (RFC 9110, section 5.5) takes white space away before, and so does
  // this one. A number is a bare key like another.
  test.each(load('item.json').map(named))('item: %s', (_name, vector) => {
    expect(parsed(vector.raw.join(', '))).toBe(vector.name === 'empty item' ? null : '1');
  });
});

describe('the header', () => {
  test.each<[header: string, key: string]>([
    ['k1', 'k1'],
    ['"k1"', 'k1'],
    [' \t"k1"\t ', 'k1'],
    ['\tk1 ', 'k1'],
    ['"a b, c; d"', 'a b, c; d'],
    ['"say \\"hi\\" \\\\ bye"', 'say "hi" \\ bye'],
    ['"\\\\"', '\\'],
    ['"\\""', '"'],
    ['"..."', '...'],
    ['.a', '.a'],
    ["!#$%&'()*+-./:<=>?@[]^_`{|}~", "!#$%&'()*+-./:<=>?@[]^_`{|}~"],
    ['?1', '?1'],
    [':aGk=:', ':aGk=:'],
    ['k'.repeat(255), 'k'.repeat(255)],
    [`"${'k'.repeat(255)}"`, 'k'.repeat(255)],
    [`"${'\\"'.repeat(255)}"`, '"'.repeat(255)],
    ['dk_acme_113056fb1a9f4af2f493e381d325b9759f004342', 'dk_acme_113056fb1a9f4af2f493e381d325b9759f004342'],
  ])('%p is the key %p', (header, key) => {
    expect(parseIdempotencyKey(header)).toBe(key);
    expect(checkKey(key)).toBe(key);
  });

  test.each<[name: string, header: string]>([
    ['nothing', ''],
    ['white space', ' \t '],
    ['an empty string', '""'],
    ['a blank string', '"  "'],
    ['a space before the key', '" k"'],
    ['a space behind the key', '"k "'],
    ['a dot', '.'],
    ['two dots', '..'],
    ['a dot in quotes', '"."'],
    ['two dots in quotes', '".."'],
    ['an open quote', '"k'],
    ['a quote alone', '"'],
    ['a quote at the end', 'k"'],
    ['a quote inside', 'a"b'],
    ['an escape that ends the string', '"k\\"'],
    ['another escape', '"\\n"'],
    ['a backslash in a bare key', 'a\\b'],
    ['a bare space', 'a b'],
    ['a bare tab', 'a\tb'],
    ['a bare comma', 'a,b'],
    ['a list of bare keys', 'a, b'],
    ['a list of strings', '"a", "b"'],
    ['two strings', '"a""b"'],
    ['a parameter', '"a";b=1'],
    ['a parameter on a bare key', 'a;b=1'],
    ['an inner list', '("a")\u00a0'],
    ['a line feed at the end', 'k\n'],
    ['a line feed in quotes', '"k\n"'],
    ['a vertical tab around', '\vk'],
    ['a no-break space around', '\u00a0k'],
    ['a letter beyond ASCII', 'é'],
    ['a letter beyond ASCII in quotes', '"é"'],
    ['U+007F', '"a\u007f"'],
    ['U+0000', 'a\0'],
    ['256 characters', 'k'.repeat(256)],
    ['256 characters in quotes', `"${'k'.repeat(256)}"`],
    ['256 escaped characters', `"${'\\"'.repeat(256)}"`],
    ['a megabyte of quotes', '"'.repeat(1024 * 1024)],
    ['a megabyte of escapes', `"${'\\\\'.repeat(1024 * 1024)}"`],
  ])('%s is refused', (_name, header) => {
    expect(() => parseIdempotencyKey(header)).toThrow(InvalidIdempotencyKey);
  });
});

describe('the two forms name one key', () => {
  const runs = { seed: 9651, numRuns: 5_000 };
  const printable = fc.string({ unit: 'grapheme-ascii', maxLength: 20 });
  const header = fc
    .array(fc.constantFrom('"', '\\', '\\"', 'a', ' ', ',', ';', '.', 'b=1', '\t', 'é', '\x7f'), { maxLength: 8 })
    .map((units) => units.join(''));

  test('a key written as a String by another library is read back, if it can be a key', () => {
    fc.assert(
      fc.property(printable, (value) => {
        expect(parsed(serializeString(value))).toBe(checked(value));
      }),
      runs,
    );
  });

  test('a key that may stand bare is the same key in quotes', () => {
    fc.assert(
      fc.property(printable, (value) => {
        if (/[ ,;"\\]/.test(value) || value === '') return;
        expect(parsed(value)).toBe(parsed(`"${value}"`));
      }),
      runs,
    );
  });

  test('a quoted header is read exactly as another library reads an Item that is a String without parameters', () => {
    fc.assert(
      fc.property(
        header.map((rest) => `"${rest}`),
        (value) => {
          expect(parsed(value)).toBe(oracle(value));
        },
      ),
      runs,
    );
  });

  function oracle(value: string): string | null {
    let item;
    try {
      item = parseItem(value.replace(/^[ \t]+|[ \t]+$/g, ''));
    } catch {
      return null;
    }
    return typeof item[0] === 'string' && item[1].size === 0 ? checked(item[0]) : null;
  }

  test('whatever is accepted is 1–255 printable ASCII characters without outer spaces, and not "." or ".."', () => {
    fc.assert(
      fc.property(fc.oneof(header, printable, fc.string({ unit: 'binary' })), (value) => {
        for (const key of [parsed(value), checked(value)]) {
          if (key !== null) expect(key).toMatch(/^(?!\.{1,2}$)[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?$/);
        }
      }),
      runs,
    );
  });
});

describe('a key in a batch item is its own characters', () => {
  test.each(['k1', 'a b', 'a,b;c', '"quoted"', 'back\\slash', '...', 'k'.repeat(255)])('%p is one', (value) => {
    expect(checkKey(value)).toBe(value);
  });
  test.each(['', ' ', ' k', 'k ', '.', '..', 'é', 'a\tb', 'a\n', '\0', '\ud800', 'k'.repeat(256)])(
    '%p is none',
    (value) => {
      expect(() => checkKey(value)).toThrow(InvalidIdempotencyKey);
    },
  );
});
