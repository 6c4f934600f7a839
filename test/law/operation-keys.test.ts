import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { canonicalJson, intentKey, operationKey, operationKeyLengthPrefixed, sha256 } from '#key';
import { text } from './arbitraries.js';
import { describeVectors, vectorBytes } from './vectors.js';

interface KeyVectors {
  operation: { parts: string[]; sha256: string }[];
  intent: { tenant: string; op: string; target: string; req: string; sha256: string }[];
}

const runs = { seed: 20261130, numRuns: 1_000 };

describeVectors('the published operation and intent keys', () => {
  const vectors: KeyVectors = JSON.parse(vectorBytes('keys/keys.json').toString('utf8'));

  test('all are there', () => {
    expect([vectors.operation.length, vectors.intent.length]).toEqual([6, 4]);
  });

  for (const { parts, sha256: hex } of vectors.operation) {
    test(`operation key of ${JSON.stringify(parts)}`, () => {
      expect(operationKey(parts)).toBe(hex);
    });
  }

  for (const { sha256: hex, ...intent } of vectors.intent) {
    test(`intent key of ${JSON.stringify(intent)}`, () => {
      expect(intentKey(intent)).toBe(hex);
    });
  }
});

describe('operation keys', () => {
  const prepared = (parts: readonly string[]): string => JSON.stringify(parts.map((p) => p.normalize('NFC').trim()));
  const part = text.map((t) => t.replaceAll('\x1f', ':'));
  const filled = part.filter((t) => t.normalize('NFC').trim() !== '');
  const parts = fc.array(filled, { minLength: 1, maxLength: 4 });

  test('are equal exactly where the trimmed, NFC-normalised parts are', () => {
    fc.assert(
      fc.property(parts, parts, (a, b) => {
        expect(operationKey(a) === operationKey(b)).toBe(prepared(a) === prepared(b));
        expect(operationKey(a.map((p) => `\t${p.normalize('NFD')} `))).toBe(operationKey(a));
      }),
      runs,
    );
  });

  test('of parts whose boundary moves differ', () => {
    expect(operationKey(['ab', 'c'])).not.toBe(operationKey(['a', 'bc']));
    expect(operationKey(['a', 'b'])).not.toBe(operationKey(['a b']));
  });

  test.each<[name: string, parts: string[]]>([
    ['no part', []],
    ['an empty part', ['a', '']],
    ['a blank part', ['a', ' \t\u00a0']],
    ['a part with the separator', ['a\x1fb', 'c']],
    ['a part that begins with the separator', ['a', '\x1fb']],
    ['a part with a lone surrogate', ['\ud800']],
  ])('of %s are refused', (_name, refused) => {
    expect(() => operationKey(refused)).toThrow(TypeError);
  });

  test('with lengths are equal exactly where the parts are, whatever they contain', () => {
    const anyParts = fc.array(fc.oneof(text, fc.constantFrom('', '1:', '1:a', ':', '\x1f')), {
      minLength: 1,
      maxLength: 4,
    });
    fc.assert(
      fc.property(anyParts, anyParts, (a, b) => {
        expect(operationKeyLengthPrefixed(a) === operationKeyLengthPrefixed(b)).toBe(prepared(a) === prepared(b));
      }),
      runs,
    );
  });

  test('with lengths count UTF-8 bytes', () => {
    expect(operationKeyLengthPrefixed(['acme', 'caf\u00e9', ''])).toBe(sha256('4:acme5:caf\u00e90:').toString('hex'));
    expect(() => operationKeyLengthPrefixed([])).toThrow(TypeError);
    expect(() => operationKeyLengthPrefixed(['\ud800'])).toThrow(TypeError);
  });
});

describe('intent keys', () => {
  test('are equal exactly where all four members are', () => {
    const intent = fc.record({ tenant: text, op: text, target: text, req: text });
    fc.assert(
      fc.property(intent, intent, (a, b) => {
        expect(intentKey(a) === intentKey(b)).toBe(canonicalJson(a) === canonicalJson(b));
        expect(intentKey({ ...a, target: a.target + b.req, req: '' })).not.toBe(
          intentKey({ ...a, target: a.target, req: `${b.req}x` }),
        );
      }),
      runs,
    );
  });

  test('of a lone surrogate are refused', () => {
    expect(() => intentKey({ tenant: 'a', op: 'b', target: 'c', req: '\udfff' })).toThrow(TypeError);
  });
});
