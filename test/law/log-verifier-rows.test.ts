import { afterAll, describe, expect, test } from '@jest/globals';
import { appendFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '#key';
import { runVerifier } from '#log';
import { recorded, TestBundle } from '../support/log-bundle.js';
import { all, KEY, SIZE, Workshop } from '../support/log-verify.js';

const shop = new Workshop();
afterAll(() => rmSync(shop.folder, { recursive: true, force: true }));

describe('a whole bundle', () => {
  test('is ok in every check', async () => {
    expect(await shop.verify(shop.whole)).toMatchObject({ code: 0, verdict: 'ok', status: all('ok') });
  });

  test('is ok at the sizes at which tiles fill', async () => {
    for (const size of [300, 511, 512, 513]) {
      const place = TestBundle.of(size).write(join(shop.folder, `size-${size}`));
      expect(await shop.verify(place)).toMatchObject({ code: 0, status: all('ok') });
    }
  });

  test('may have the full tile where it had a partial one, and rows in any order', async () => {
    const place = shop.withRows((rows) => rows.splice(0, SIZE, ...rows.toReversed()));
    const { log } = TestBundle.of(800);
    for (const path of ['tile/0/002', 'tile/entries/002'])
      writeFileSync(join(place, path), log.files.get(path) ?? Buffer.alloc(0));
    for (const path of ['tile/0/002.p', 'tile/entries/002.p']) rmSync(join(place, path), { recursive: true });
    expect(await shop.verify(place)).toMatchObject({ code: 0, status: all('ok') });
  });

  test('says in words what it says in JSON', async () => {
    const written: string[] = [];
    const io = { out: (text: string) => written.push(text), err: (text: string) => written.push(text) };
    expect(await runVerifier(['bundle', shop.whole, '--key', KEY, '--earlier', shop.earlier], io)).toBe(0);
    expect(written.join('').split('\n')).toEqual([
      ...Object.keys(all('ok')).map((name) => expect.stringMatching(new RegExp(`^ok +${name}\\b`))),
      'ok',
      '',
    ]);
    expect(written.join('')).toContain('rows: 700 ok');
  });
});

describe('a row that says something else than the log', () => {
  const other: Readonly<Record<string, unknown>> = {
    ...{ ledgerEntryId: recorded(9).leaf.ledgerEntryId, decisionId: recorded(9).leaf.decisionId, key: 'other' },
    ...{ keySource: 'client', contentKey: `dk_acme_${'0'.repeat(40)}`, fingerprint: '0'.repeat(64), action: 'other' },
    ...{ actionVersion: 2, subject: { type: 'case', id: 'C-1' }, reportingPeriod: null, effectId: null },
    ...{ outcome: { status: 'refused', reason: 'x' }, model: { id: 'm-1', version: 'x' }, policyVersion: 'pol-8' },
    ...{ promptTemplateSha256: '0'.repeat(64), retrievalSnapshotId: 'x', externalRef: 'x' },
    ...{ recordedAt: '2026-11-30T17:36:00.000043Z' },
  };

  test.each(Object.entries(other))('in its %s is named', async (name, value) => {
    const place = shop.withRows((rows) => Object.assign(rows[42] ?? {}, { [name]: value }));
    const { code, status, findings } = await shop.verify(place);
    expect([code, status]).toEqual([1, { ...all('ok'), rows: 'failed' }]);
    expect(findings).toMatch(new RegExp(`entry 42 \\(${recorded(42).leaf.ledgerEntryId}\\).*: ${name} is not`));
  });

  test.each<[name: string, failed: string[], change: (row: JsonObject) => void]>([
    [
      'params',
      ['identities', 'digests'],
      (row) => Object.assign(Object(row['inputs'])['params'], { amount: '1000000.00' }),
    ],
    ['the model in its inputs', ['identities'], (row) => Object.assign(Object(row['inputs'])['model'], { id: 'm-2' })],
    ['a new member of its inputs', ['identities'], (row) => Object.assign(Object(row['inputs']), { more: 1 })],
    ['its note', ['identities', 'digests'], (row) => Object.assign(row, { note: 'another note' })],
    ['its result', ['digests'], (row) => Object.assign(row, { result: { done: 43 } })],
    [
      'a salt',
      ['digests'],
      (row) => Object.assign(Object(row['salts']), { result: Buffer.alloc(32).toString('base64url') }),
    ],
    ['a salt that is too short', ['digests'], (row) => Object.assign(Object(row['salts']), { result: 'AAAA' })],
  ])('in %s is named', async (_name, failed, change) => {
    const { code, status, findings } = await shop.verify(shop.withRows((rows) => change(rows[42] ?? {})));
    expect([code, status]).toEqual([
      1,
      { ...all('ok'), ...Object.fromEntries(failed.map((name) => [name, 'failed'])) },
    ]);
    expect(findings).toContain(`entry 42 (${recorded(42).leaf.ledgerEntryId})`);
  });

  test('with a note or a result where there was none is named', async () => {
    for (const [index, change] of [
      [43, { note: 'x', salts: { ...Object(recorded(43).row['salts']), note: null } }],
      [44, { result: 'x' }],
    ] as const) {
      const { code, findings } = await shop.verify(shop.withRows((rows) => Object.assign(rows[index] ?? {}, change)));
      expect(code).toBe(1);
      expect(findings).toMatch(new RegExp(`entry ${index} [^"]*there was no (note|result) when it was recorded`));
    }
  });
});

describe('a row', () => {
  test.each<[name: string, index: number, change: (rows: JsonObject[]) => void]>([
    ['in the middle that is gone', 333, (rows) => rows.splice(333, 1)],
    ['at the end that is gone', 699, (rows) => rows.splice(697, 3)],
    [
      'that was put in at an index that is taken',
      5,
      (rows) => rows.splice(5, 0, { ...recorded(800).row, leafIndex: 5 }),
    ],
    ['that is there twice', 6, (rows) => rows.push({ ...rows[6] })],
    [
      'that was swapped with another',
      8,
      (rows) => {
        Object.assign(rows[7] ?? {}, { leafIndex: 8 });
        Object.assign(rows[8] ?? {}, { leafIndex: 7 });
      },
    ],
    ['of the index of another', 10, (rows) => Object.assign(rows[10] ?? {}, { leafIndex: 11 })],
    ['of an index that is none', 12, (rows) => Object.assign(rows[12] ?? {}, { leafIndex: -1 })],
  ])('%s is named', async (_name, index, change) => {
    const { code, status, findings } = await shop.verify(shop.withRows(change));
    expect([code, status['rows'], status['tree']]).toEqual([1, 'failed', 'ok']);
    expect(findings).toMatch(new RegExp(`entry ${index}\\b`));
  });

  test('that is not sealed yet, or after the checkpoint, is not checked, and not called more', async () => {
    for (const leafIndex of [null, 700]) {
      const { code, verdict, status, findings } = await shop.verify(
        shop.withRows((rows) => rows.push({ ...recorded(700).row, leafIndex })),
      );
      expect([code, verdict, status]).toEqual([3, 'incomplete', { ...all('ok'), rows: 'not checked' }]);
      expect(findings).toContain(`(decision \\"${recorded(700).leaf.decisionId}\\") is not under the checkpoint`);
    }
  });

  test('of a decision without an outcome is none of the log', async () => {
    const pending = { ...recorded(700).row, outcome: null, ledgerEntryId: null, leafIndex: null, state: 'in_flight' };
    expect(await shop.verify(shop.withRows((rows) => rows.push(pending)))).toMatchObject({
      code: 0,
      status: all('ok'),
    });
  });

  test('whose payload was erased is not checked, and not called more', async () => {
    const place = shop.withRows((rows) => {
      Object.assign(Object(rows[42]?.['salts']), { result: null });
      Object.assign(rows[42] ?? {}, { result: null });
    });
    const { code, status, findings } = await shop.verify(place);
    expect([code, status]).toEqual([3, { ...all('ok'), digests: 'not checked' }]);
    expect(findings).toContain('result or its salt is not there');
  });
});

describe('an export', () => {
  const file = (place: string): string => join(place, 'decisions.ndjson');

  test('that was made with filters is said not to be the whole', async () => {
    const place = shop.withRows((rows) => rows.splice(100, 500));
    expect(await shop.verify(place)).toMatchObject({ code: 1, status: { ...all('ok'), rows: 'failed' } });
    expect(await shop.verify(place, '--part')).toMatchObject({
      code: 3,
      status: { ...all('ok'), rows: 'not checked' },
    });
  });

  test('that was cut off, changed in one byte, or goes on after its end is not ok', async () => {
    const text = readFileSync(file(shop.whole), 'utf8');
    const cut = shop.copy();
    writeFileSync(file(cut), text.slice(0, text.lastIndexOf('\n', text.length - 2) + 1));
    expect(await shop.verify(cut)).toMatchObject({ code: 3, status: { ...all('ok'), export: 'not checked' } });
    const changed = shop.copy();
    writeFileSync(file(changed), text.replace('"receivedAt":"2026-11', '"receivedAt":"2026-12'));
    expect(await shop.verify(changed)).toMatchObject({ code: 1, status: { ...all('ok'), export: 'failed' } });
    const longer = shop.copy();
    appendFileSync(file(longer), `${JSON.stringify(recorded(1).row)}\n`);
    expect((await shop.verify(longer)).status['export']).toBe('failed');
    const bad = shop.copy();
    writeFileSync(file(bad), text.replace('"note":', '"note":null,"note":'));
    expect((await shop.verify(bad)).status['rows']).toBe('failed');
  });

  test('that is not there leaves its checks unmade', async () => {
    const place = shop.copy();
    rmSync(file(place));
    const none = { export: 'not checked', rows: 'not checked', identities: 'not checked', digests: 'not checked' };
    expect(await shop.verify(place)).toMatchObject({
      code: 3,
      verdict: 'incomplete',
      status: { ...all('ok'), ...none },
    });
  });
});
