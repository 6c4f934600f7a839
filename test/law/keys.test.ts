import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  canonicalJson,
  type DecisionInputs,
  deriveContentKey,
  downstreamDigest,
  downstreamKeys,
  fingerprint,
  type JsonObject,
  parseStrictJson,
  sha256,
  TENANT_SLUG,
} from '#key';
import { jsonObject, spelling, text } from './arbitraries.js';
import { describeVectors, vectorBytes } from './vectors.js';

interface KeyVectors {
  decision: {
    name: string;
    inputs: DecisionInputs;
    canonical: string;
    sha256: string;
    key: string;
    downstream: { hex40: string; hex32: string; uuid4: string };
    fingerprint: { noNote: string; 'note "urgent"': string };
  }[];
}

const base: DecisionInputs = {
  tenantId: 'acme',
  subject: { type: 'case', id: 'C-1042' },
  action: 'refund.create',
  params: { amount: '10.00', currency: 'EUR' },
  model: { id: 'm-1', version: '2026-09-01' },
  promptTemplateSha256: 'a'.repeat(64),
  retrievalSnapshotId: 'rs-14',
  policyVersion: 'pol-7',
};

const runs = { seed: 20261130, numRuns: 1_000 };
const keyOf = (inputs: DecisionInputs): string => deriveContentKey(inputs).key;

describeVectors('the published derivations', () => {
  const vectors: KeyVectors = JSON.parse(vectorBytes('keys/keys.json').toString('utf8'));

  test('every kind is there, and no kind that these tests do not know', () => {
    expect(Object.keys(vectors).sort()).toEqual(['decision', 'intent', 'operation']);
    expect(vectors.decision).toHaveLength(14);
  });

  test('the file is strict JSON itself', () => {
    expect(parseStrictJson(vectorBytes('keys/keys.json'))).toEqual(vectors);
  });

  for (const vector of vectors.decision) {
    test(`content key, downstream forms and fingerprints: ${vector.name}`, () => {
      const derived = deriveContentKey(vector.inputs);
      expect(derived.canonical).toBe(vector.canonical);
      expect(derived.sha256.toString('hex')).toBe(vector.sha256);
      expect(derived.key).toBe(vector.key);
      expect(downstreamKeys({ key: derived.key, digest: derived.sha256 })).toEqual({
        key: vector.key,
        ...vector.downstream,
      });
      expect(fingerprint(derived.canonical, null).toString('hex')).toBe(vector.fingerprint.noNote);
      expect(fingerprint(derived.canonical, 'urgent').toString('hex')).toBe(vector.fingerprint['note "urgent"']);
    });
  }
});

describe('the content key: same meaning, same key', () => {
  test('the order of members, white space, escapes and the spelling of numbers do not count', () => {
    const choices = fc.infiniteStream(fc.nat(0xffff));
    fc.assert(
      fc.property(jsonObject, choices, choices, (params, one, other) => {
        const spelled = (stream: Iterator<number>): DecisionInputs => ({ ...base, params: reread(params, stream) });
        expect(keyOf(spelled(one))).toBe(keyOf({ ...base, params }));
        expect(keyOf(spelled(other))).toBe(keyOf(spelled(one)));
      }),
      runs,
    );
  });

  test.each([
    ['1.0 and 1', '{"n":1.0}', '{"n":1}'],
    ['1e2 and 100', '{"n":1e2}', '{"n":100}'],
    ['10.50 and 10.5', '{"n":10.50}', '{"n":10.5}'],
    ['-0 and 0', '{"n":-0}', '{"n":0}'],
    ['\\u0041 and A', '{"\\u0041":"\\u0041"}', '{"A":"A"}'],
    ['\\/ and /', '{"n":"\\/"}', '{"n":"/"}'],
    ['the order of members', '{"a":1,"b":{"c":1,"d":2}}', '{ "b": {"d":2, "c":1},\n"a":1 }'],
  ])('%s are one', (_name, a, b) => {
    expect(keyOf({ ...base, params: object(a) })).toBe(keyOf({ ...base, params: object(b) }));
  });

  test('members that are no part of the inputs do not become one', () => {
    const extended = { ...base, evidence: { runId: 'r-1' }, subject: { ...base.subject, label: 'x' } };
    expect(deriveContentKey(extended)).toEqual(deriveContentKey(base));
  });
});

describe('the content key: another decision, another key', () => {
  const paths: [name: string, change: (inputs: DecisionInputs, value: string) => DecisionInputs][] = [
    ['subject.type', (i, value) => ({ ...i, subject: { ...i.subject, type: value } })],
    ['subject.id', (i, value) => ({ ...i, subject: { ...i.subject, id: value } })],
    ['action', (i, value) => ({ ...i, action: value })],
    ['params.amount', (i, value) => ({ ...i, params: { ...i.params, amount: value } })],
    ['the name of a parameter', (i, value) => ({ ...i, params: { [value]: 1 } })],
    ['model.id', (i, value) => ({ ...i, model: { ...i.model, id: value } })],
    ['model.version', (i, value) => ({ ...i, model: { ...i.model, version: value } })],
    ['promptTemplateSha256', (i, value) => ({ ...i, promptTemplateSha256: value })],
    ['retrievalSnapshotId', (i, value) => ({ ...i, retrievalSnapshotId: value })],
    ['policyVersion', (i, value) => ({ ...i, policyVersion: value })],
  ];

  test.each(paths)('%s counts, to the last character', (_name, change) => {
    fc.assert(
      fc.property(text, text, (a, b) => {
        const isOne = keyOf(change(base, a)) === keyOf(change(base, b));
        expect(isOne).toBe(a === b);
      }),
      runs,
    );
  });

  test('the tenant counts and is in the key', () => {
    const other = deriveContentKey({ ...base, tenantId: 'globex' });
    expect(other.key).toMatch(/^dk_globex_[0-9a-f]{40}$/);
    expect(other.sha256).not.toEqual(deriveContentKey(base).sha256);
  });

  test('two fields never run into one another: a boundary that moves gives another key', () => {
    const neighbours = paths.filter(([name]) => !name.startsWith('the name'));
    fc.assert(
      fc.property(fc.constantFrom(...neighbours), fc.constantFrom(...neighbours), text, text, (first, second, a, b) => {
        fc.pre(first[0] !== second[0] && b !== '');
        const split = second[1](first[1](base, a), b);
        const moved = second[1](first[1](base, a + b), '');
        expect(keyOf(split)).not.toBe(keyOf(moved));
      }),
      runs,
    );
  });

  test.each<[name: string, a: JsonObject, b: JsonObject]>([
    ['null and absent', { a: null }, {}],
    ['an empty text and null', { a: '' }, { a: null }],
    ['a number and its text', { a: 1 }, { a: '1' }],
    ['"10.00" and "10.0"', { a: '10.00' }, { a: '10.0' }],
    ['composed and decomposed', { a: '\u00e9' }, { a: 'e\u0301' }],
    ['upper and lower case', { a: 'X' }, { a: 'x' }],
    ['with and without a space', { a: 'x ' }, { a: 'x' }],
    ['an array and another order of it', { a: [1, 2] }, { a: [2, 1] }],
    ['one element and the element', { a: [1] }, { a: 1 }],
    ['nested and flat', { a: { b: 1 } }, { 'a.b': 1 }],
    ['one more member', { a: 1 }, { a: 1, b: 2 }],
    ['a member named __proto__ and none', object('{"__proto__":{"a":1}}'), {}],
  ])('%s are two', (_name, a, b) => {
    expect(keyOf({ ...base, params: a })).not.toBe(keyOf({ ...base, params: b }));
  });

  test('what is not plain JSON gets no key', () => {
    expect(() => keyOf({ ...base, params: { a: NaN } })).toThrow(TypeError);
    expect(() => keyOf({ ...base, action: '\ud800' })).toThrow(TypeError);
  });
});

describe('the fingerprint', () => {
  test('is the hash of the canonical request as a whole', () => {
    fc.assert(
      fc.property(jsonObject, fc.option(text), (params, note) => {
        const inputs = { ...base, params };
        const { canonical } = deriveContentKey(inputs);
        expect(fingerprint(canonical, note)).toEqual(sha256(canonicalJson({ note, inputs: { ...inputs } })));
      }),
      runs,
    );
  });

  test('tells notes apart: none, empty, the word null, and one that closes the string itself', () => {
    const { canonical } = deriveContentKey(base);
    const notes = [null, '', 'null', ' ', '"', '","note":"', 'é', 'e\u0301'];
    expect(new Set(notes.map((note) => fingerprint(canonical, note).toString('hex'))).size).toBe(notes.length);
  });

  test('of a note with a lone surrogate is refused', () => {
    expect(() => fingerprint('{}', '\ud800')).toThrow(TypeError);
  });
});

describe('the downstream forms', () => {
  test('of a client key come from the tenant, U+001F and the key', () => {
    const digest = downstreamDigest({ tenantId: 'acme', key: 'step-1' });
    expect(digest).toEqual(sha256(Buffer.from('acme\x1fstep-1')));
    const hex = digest.toString('hex');
    expect(downstreamKeys({ key: 'step-1', digest })).toMatchObject({
      key: 'step-1',
      hex40: hex.slice(0, 40),
      hex32: hex.slice(0, 32),
    });
  });

  test('of one key in two tenants differ', () => {
    const a = downstreamDigest({ tenantId: 'a', key: 'bc' });
    expect(a).not.toEqual(downstreamDigest({ tenantId: 'ab', key: 'c' }));
    expect(() => downstreamDigest({ tenantId: 'a\x1fb', key: 'c' })).toThrow(TypeError);
    expect(() => downstreamDigest({ tenantId: 'a', key: 'b\x1fc' })).toThrow(TypeError);
  });

  test('the UUID has version 4 and variant 10, and the other 122 bits are those of the digest', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
        const digest = Buffer.from(bytes);
        const before = digest.toString('hex');
        const { uuid4 } = downstreamKeys({ key: 'k', digest });
        expect(uuid4).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
        const mask = 0xffffffff_ffff_0fff_3fff_ffffffffffffn;
        const uuidBits = BigInt(`0x${uuid4.replaceAll('-', '')}`);
        expect(uuidBits & mask).toBe(BigInt(`0x${before.slice(0, 32)}`) & mask);
        expect(digest.toString('hex')).toBe(before);
      }),
      runs,
    );
  });

  test('of a digest of another length are refused', () => {
    expect(() => downstreamKeys({ key: 'k', digest: Buffer.alloc(31) })).toThrow(TypeError);
    expect(() => downstreamKeys({ key: 'k', digest: Buffer.alloc(33) })).toThrow(TypeError);
  });
});

describe('the name of a tenant', () => {
  test.each(['a', '0', 'acme', 'a-b', 'a--b', 'a'.repeat(20)])('%s is one', (slug) => {
    expect(TENANT_SLUG.test(slug)).toBe(true);
  });
  test.each(['', '-', '-a', 'a-', 'A', 'a_b', 'a.b', 'a\n', 'é', 'a'.repeat(21)])('%p is none', (slug) => {
    expect(TENANT_SLUG.test(slug)).toBe(false);
  });
});

/** The object that a JSON text stands for, as strict parsing gives it. */
function object(json: string): JsonObject {
  const value = parseStrictJson(Buffer.from(json));
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw new Error('no object');
  return value;
}

/** The same params, through one of their many spellings. */
function reread(params: JsonObject, choices: Iterator<number>): JsonObject {
  return object(spelling(params, choices));
}
