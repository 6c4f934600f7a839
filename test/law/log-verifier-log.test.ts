import { afterAll, describe, expect, test } from '@jest/globals';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeEntries, encodeEntries, leafHash } from '#log';
import { recorded, TestBundle } from '../support/log-bundle.js';
import { TestLog, testSigner } from '../support/log.js';
import { all, SIZE, Workshop } from '../support/log-verify.js';

const shop = new Workshop();
afterAll(() => rmSync(shop.folder, { recursive: true, force: true }));

function changeEntry(place: string, path: string, at: number, change: (entry: string) => string): Buffer {
  const entries = decodeEntries(readFileSync(join(place, path)));
  const changed = Buffer.from(change(entries[at]?.toString('utf8') ?? ''));
  writeFileSync(join(place, path), encodeEntries(entries.with(at, changed)));
  return changed;
}

describe('an entry of the log', () => {
  test('whose bytes were changed is named, by its hash and by its root', async () => {
    const place = shop.copy();
    changeEntry(place, 'tile/entries/000', 42, (leaf) => leaf.replace('m-1', 'm-2'));
    const { code, status, findings } = await shop.verify(place);
    expect([code, status]).toEqual([
      1,
      { ...all('ok'), tree: 'failed', earlier: 'failed', tiles: 'failed', rows: 'failed', identities: 'failed' },
    ]);
    expect(findings).toMatch(/entry 42 \(\S+\) has not the hash in tile\/0\/000/);
  });

  test('whose hash was changed as well is named by the hashes above, to within its tile', async () => {
    const place = shop.copy();
    const changed = changeEntry(place, 'tile/entries/001', 44, (leaf) => leaf.replace('m-1', 'm-2'));
    const tile = readFileSync(join(place, 'tile/0/001'));
    leafHash(changed).copy(tile, 44 * 32);
    writeFileSync(join(place, 'tile/0/001'), tile);
    const { code, status, findings } = await shop.verify(place);
    expect([code, status['tree'], status['tiles']]).toEqual([1, 'failed', 'failed']);
    expect(findings).toContain('tile/1/000.p/2 has another hash for the entries 256 to 511');
    expect(findings).toMatch(/entry 300 \(\S+\): model is not the one of the log/);
  });

  test('that is no leaf, or of another tenant, is named', async () => {
    for (const [change, what] of [
      [(leaf: string) => leaf.replace('{', '{ '), 'not in its canonical form'],
      [(leaf: string) => leaf.replace('"v":1', '"v":2'), 'Look at'],
      [(leaf: string) => leaf.replace('"tenant":"acme"', '"tenant":"acne"'), 'of the tenant acne'],
    ] as const) {
      const place = shop.copy();
      changeEntry(place, 'tile/entries/002.p/188', 0, change);
      const { status, findings } = await shop.verify(place);
      expect(status['entries']).toBe('failed');
      expect(findings).toMatch(new RegExp(`entry 512\\b[^}]*${what}`));
    }
  });

  test('twice with one key, or applied twice to one subject, is named though the tree is sound', async () => {
    // The entries 104 and 604 are refused: a refusal takes no place, so that there may be two for one subject.
    const again: Readonly<Record<number, string>> = { 600: 'C-100', 604: 'C-104' };
    const decisions = Array.from({ length: SIZE }, (_, index) => recorded(index, again[index]));
    const twice = decisions.with(500, {
      ...recorded(500),
      leaf: { ...recorded(500).leaf, key: 'client 1', keySource: 'client' },
    });
    const { status, findings } = await shop.verify(new TestBundle(twice).write(join(shop.folder, 'twice')));
    expect(status).toMatchObject({ tree: 'ok', tiles: 'ok', entries: 'ok', keys: 'failed', places: 'failed' });
    expect(findings).toMatch(/entry 500 \(\S+\) has the key of entry 1/);
    expect(findings).toMatch(/entry 600 \(\S+\) was applied to what entry 100 had been applied to/);
    expect(findings.match(/was applied to what/g)).toHaveLength(1);
  });

  test('is not judged by rules that are not there', async () => {
    const bundle = TestBundle.of(SIZE);
    bundle.actions = bundle.actions.slice(1);
    const { code, status, findings } = await shop.verify(bundle.write(join(shop.folder, 'no-rules')));
    expect([code, status]).toEqual([3, { ...all('ok'), places: 'not checked' }]);
    expect(findings).toContain('the rules of refund.create, version 1, are not there');
  });
});

describe('a log', () => {
  test('that was rewritten and signed again does not fit the checkpoint kept from earlier', async () => {
    const decisions = Array.from({ length: SIZE }, (_, index) => recorded(index, index === 42 ? 'C-x' : undefined));
    const { code, status, findings } = await shop.verify(
      new TestBundle(decisions).write(join(shop.folder, 'rewritten')),
    );
    expect([code, status]).toEqual([1, { ...all('ok'), earlier: 'failed' }]);
    expect(findings).toContain('The root of the first 300 entries is');
  });

  test('that was put back to an old backup, or cut at its end, is shorter than it was', async () => {
    const { code, status, findings } = await shop.verify(TestBundle.of(250).write(join(shop.folder, 'old')));
    expect([code, status]).toEqual([1, { ...all('ok'), earlier: 'failed' }]);
    expect(findings).toContain('The log had 300 entries, and has 250');
  });

  test('that is signed by another key is not believed, and the rest not called anything', async () => {
    const bundle = TestBundle.of(SIZE);
    const place = bundle.write(join(shop.folder, 'stranger'));
    const stranger = new TestLog([testSigner(2)]).seal(bundle.log.entries);
    writeFileSync(join(place, 'checkpoint'), stranger.checkpoint());
    const { code, status } = await shop.verify(place);
    expect([code, status]).toEqual([1, { ...all('not checked'), key: 'ok', checkpoint: 'failed', earlier: 'ok' }]);
  });

  test.each([
    ['tile/entries/001', { tree: 'ok', entries: 'not checked', rows: 'not checked' }],
    ['tile/0/001', { tree: 'ok', tiles: 'not checked' }],
    ['tile/1', { tree: 'ok', tiles: 'not checked' }],
    ['checkpoint', { checkpoint: 'not checked', tree: 'not checked' }],
  ])('without %s is incomplete, never ok', async (path, expected) => {
    const place = shop.copy();
    rmSync(join(place, path), { recursive: true });
    const { code, verdict, status } = await shop.verify(place);
    expect([code, verdict]).toEqual([3, 'incomplete']);
    expect(status).toMatchObject(expected);
  });

  test('without an entry and its hash gives no tree', async () => {
    for (const [at, earlier] of [
      ['002.p', 'ok'],
      ['001', 'not checked'],
    ]) {
      const place = shop.copy();
      for (const path of [`tile/entries/${at}`, `tile/0/${at}`]) rmSync(join(place, path), { recursive: true });
      const { code, status } = await shop.verify(place);
      expect([code, status['tree'], status['earlier']]).toEqual([3, 'not checked', earlier]);
    }
  });

  test('that lacks entries is named by them, as long as their hashes are there', async () => {
    const place = shop.copy();
    const entries = decodeEntries(readFileSync(join(place, 'tile/entries/000')));
    writeFileSync(join(place, 'tile/entries/000'), encodeEntries(entries.filter((_, at) => at !== 42 && at !== 255)));
    const { code, status, findings } = await shop.verify(place);
    expect([code, status]).toEqual([1, { ...all('ok'), entries: 'failed', rows: 'not checked' }]);
    for (const at of [42, 255]) expect(findings).toContain(`entry ${at} is missing in tile/entries/000`);

    rmSync(join(place, 'tile/0/000'));
    const { code: blind, findings: few } = await shop.verify(place);
    expect([blind, few]).toEqual([1, expect.stringContaining('tile/entries/000 has 254 entries, not 256')]);
  });

  test('whose tile or bundle is too short is wrong', async () => {
    for (const path of ['tile/entries/001', 'tile/0/001', 'tile/1/000.p/2']) {
      const place = shop.copy();
      writeFileSync(join(place, path), readFileSync(join(place, path)).subarray(0, 40));
      expect((await shop.verify(place)).code).toBe(1);
    }
  });
});
