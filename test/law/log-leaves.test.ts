import { describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { canonicalJson, deriveContentKey, type DecisionInputs, fingerprint, type JsonValue } from '#key';
import { type Leaf, leafBytes, leafHash, LogError, payloadDigest, readLeaf } from '#log';

/** Made once, by another program in another language, and never changed: leaves that were signed must verify for ever. */
interface Golden {
  readonly name: string;
  readonly members: Leaf;
  readonly inputs: DecisionInputs;
  readonly note: string | null;
  readonly result: JsonValue;
  readonly salts: Readonly<Record<'params' | 'note' | 'result', string | null>>;
  readonly leaf: string;
  readonly leafHash: string;
}
const golden: Golden[] = JSON.parse(readFileSync(new URL('./fixtures/leaves-v1.json', import.meta.url), 'utf8'));
const [{ members }] = golden as [Golden];

describe('the golden leaves of version 1', () => {
  test.each(golden)('$name: the bytes, and back', ({ members, leaf, leafHash: hash }) => {
    expect(leafBytes(members).toString('utf8')).toBe(leaf);
    expect(leafHash(leafBytes(members)).toString('hex')).toBe(hash);
    expect(readLeaf(Buffer.from(leaf))).toEqual(members);
  });

  test.each(golden)('$name: the digests and identities of what it stands for', (one) => {
    const salt = (text: string | null): Buffer => Buffer.from(text ?? '', 'base64url');
    const form = (value: JsonValue): string | null => (value === null ? null : canonicalJson(value));
    expect(payloadDigest(salt(one.salts.params), form(one.inputs.params))).toBe(one.members.paramsDigest);
    expect(payloadDigest(salt(one.salts.note), form(one.note))).toBe(one.members.noteDigest);
    expect(payloadDigest(salt(one.salts.result), form(one.result))).toBe(one.members.resultDigest);
    const { canonical, key } = deriveContentKey(one.inputs);
    expect(key).toBe(one.members.contentKey);
    expect(fingerprint(canonical, one.note).toString('hex')).toBe(one.members.fingerprint);
  });

  test('fit a bundle, also the longest', () => {
    expect(Math.max(...golden.map(({ leaf }) => leaf.length))).toBeLessThan(65_535 / 2);
  });
});

describe('a leaf', () => {
  const wrong: Readonly<Record<keyof Leaf, unknown>> = {
    ...{ tenant: '', ledgerEntryId: 'x', decisionId: null, key: '', keySource: 'header', contentKey: null },
    ...{ fingerprint: 'AB', action: 7, actionVersion: '1', subject: { type: 'case' }, reportingPeriod: 7 },
    ...{ outcome: 'unknown', reason: '', model: { id: 'a', version: 'b', more: 'c' }, promptTemplateSha256: null },
    ...{ retrievalSnapshotId: undefined, policyVersion: {}, effectId: 'none', externalRef: [], recordedBy: null },
    ...{ recordedAt: '2026-11-30T17:36:00.123Z', paramsDigest: 'x', noteDigest: '', resultDigest: 1 },
  };

  test.each(Object.entries(wrong))('is not made with a wrong %s, nor without it', (name, value) => {
    expect(() => leafBytes({ ...members, [name]: value })).toThrow(`Look at "${name}".`);
    const less: Record<string, unknown> = { ...members };
    delete less[name];
    expect(() => leafBytes(less as unknown as Leaf)).toThrow(LogError);
  });

  test('is not made with a member that is none of its own, or with another version', () => {
    expect(() => leafBytes({ ...members, extra: 1 } as Leaf)).toThrow('Look at "extra".');
    expect(() => readLeaf(Buffer.from(canonicalJson({ ...plain(), v: 2 })))).toThrow('Look at "v".');
  });

  test('changes its bytes with each of its members', () => {
    const other: Partial<Record<keyof Leaf, unknown>> = {
      ...{ keySource: 'client', outcome: 'refused', actionVersion: 2, recordedAt: '2026-11-30T17:36:00.123457Z' },
      ...{ subject: { type: 'case', id: 'C-1043' }, model: { id: 'm-1', version: '2026-09-02' } },
    };
    const bytes = Object.keys(members).map((name) => {
      const value = members[name as keyof Leaf];
      const changed =
        other[name as keyof Leaf] ??
        (typeof value === 'string' ? value.replace(/.$/, (c) => (c === '0' ? '1' : '0')) : null);
      const replaced = changed ?? (name.endsWith('Digest') ? '0'.repeat(64) : 'other');
      return leafBytes({ ...members, [name]: replaced }).toString('utf8');
    });
    expect(new Set([...bytes, leafBytes(members).toString('utf8')]).size).toBe(24 + 1);
  });

  test.each([
    ['nothing', ''],
    ['no object', '[]'],
    ['no JSON', '{'],
    ['another order', JSON.stringify(members)],
    ['a space', canonicalJson({ ...plain(), v: 1 }).replace(',', ', ')],
    ['a member twice', canonicalJson({ ...plain(), v: 1 }).replace('"v":1', '"v":1,"v":1')],
    ['a member less', canonicalJson({ ...plain(), v: 1 }).replace('"reason":null,', '')],
  ])('is not read from %s', (_name, text) => {
    expect(() => readLeaf(Buffer.from(text))).toThrow(LogError);
  });

  test('needs a salt of 32 bytes for a payload, and none where there is nothing', () => {
    expect(() => payloadDigest(Buffer.alloc(16), '{}')).toThrow(RangeError);
    expect(payloadDigest(Buffer.alloc(0), null)).toBeNull();
  });

  function plain(): Record<string, JsonValue> {
    return JSON.parse(JSON.stringify(members));
  }
});
