import { afterAll, describe, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROJECT_ROOT } from '#database';
import { consistencyProof, formatReceipt, formatVerifierKey, inclusionProof, leafBytes, runVerifier } from '#log';
import { recorded, TestBundle } from '../support/log-bundle.js';
import { TestLog, testSigner } from '../support/log.js';
import { KEY, runForJson } from '../support/log-verify.js';

const SIZE = 300;
const INDEX = 42;
const folder = mkdtempSync(join(tmpdir(), 'decision-ledger-receipts-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;
function file(content: string | Buffer | object): string {
  const path = join(folder, String(files++));
  writeFileSync(path, typeof content === 'string' || Buffer.isBuffer(content) ? content : JSON.stringify(content));
  return path;
}

const { log } = TestBundle.of(SIZE);
const { leaf, row } = recorded(INDEX);
const hashes = await inclusionProof(INDEX, SIZE, log.read);
const receipt = formatReceipt({ index: INDEX, hashes, checkpoint: log.checkpoint() });
/** As `GET /v1/ledger/entries/{ledgerEntryId}` gives it. */
const entry = { ...leaf, leafIndex: INDEX, salts: row['salts'] };

const ofReceipt = (text: string, ...options: string[]) => runForJson('receipt', file(text), '--key', KEY, ...options);

describe('a receipt', () => {
  test('proves its entry, given as the service gives it or as the bytes of its leaf', async () => {
    for (const given of [entry, { ...leaf, v: 1 }, leafBytes(leaf)])
      expect(await ofReceipt(receipt, '--entry', file(given))).toMatchObject({
        code: 0,
        verdict: 'ok',
        status: { receipt: 'ok', checkpoint: 'ok', entry: 'ok', inclusion: 'ok' },
      });
  });

  test('is compared with the payloads of an exported row if there is one', async () => {
    const status = { rows: 'ok', identities: 'ok', digests: 'ok' };
    const given = ['--entry', file(entry), '--row'];
    expect(await ofReceipt(receipt, ...given, file(row))).toMatchObject({ code: 0, status });
    const changed = { ...row, result: { done: 43 } };
    expect(await ofReceipt(receipt, ...given, file(changed))).toMatchObject({
      code: 1,
      status: { ...status, digests: 'failed' },
    });
  });

  test('without its entry proves nothing, and says so', async () => {
    expect(await ofReceipt(receipt)).toMatchObject({
      code: 3,
      verdict: 'incomplete',
      status: { receipt: 'ok', checkpoint: 'ok', entry: 'not checked', inclusion: 'not checked' },
    });
  });

  test('does not prove an entry in which anything was changed', async () => {
    for (const [name, value] of Object.entries(leaf)) {
      const flip = (text: string): string => text.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
      const changed = { ...entry, [name]: typeof value === 'string' ? flip(value) : { type: 'case', id: 'C-1' } };
      const { code, status } = await ofReceipt(receipt, '--entry', file(changed));
      expect([name, code]).toEqual([name, 1]);
      expect([status['entry'], status['inclusion']]).toContain('failed');
    }
    const { code, findings } = await ofReceipt(receipt, '--entry', file({ ...entry, actionVersion: 2 }));
    expect([code, findings]).toEqual([
      1,
      expect.stringContaining(`entry 42 (${leaf.ledgerEntryId}) is not at index 42`),
    ]);
  });

  test('with another index, hash, checkpoint or key is refused', async () => {
    const other = new TestLog([testSigner(1)]).seal(log.entries.slice(0, SIZE - 1));
    for (const changed of [
      receipt.replace('index 42', 'index 43'),
      receipt.replace(/\n[\w+/]{43}=/, `\n${Buffer.alloc(32).toString('base64')}`),
      formatReceipt({ index: INDEX, hashes: hashes.slice(1), checkpoint: log.checkpoint() }),
      formatReceipt({ index: INDEX, hashes, checkpoint: other.checkpoint() }),
      receipt.replace('\n300\n', '\n301\n'),
      'nothing of the kind',
    ])
      expect((await ofReceipt(changed, '--entry', file(entry))).code).toBe(1);
    const stranger = ['--key', formatVerifierKey(testSigner(9)), '--entry', file(entry)];
    expect(await runForJson('receipt', file(receipt), ...stranger)).toMatchObject({
      code: 1,
      status: { checkpoint: 'failed', inclusion: 'not checked' },
    });
  });

  test('of the log of another tenant does not prove it, though it is in that tree', async () => {
    const name = 'log.example/other';
    const other = new TestLog([testSigner(1, name)]).seal(log.entries).checkpoint(name);
    const signed = file(formatReceipt({ index: INDEX, hashes, checkpoint: other }));
    const key = formatVerifierKey(testSigner(1, name));
    const { code, status } = await runForJson('receipt', signed, '--key', key, '--entry', file(entry));
    expect([code, status['checkpoint'], status['entry']]).toEqual([1, 'ok', 'failed']);
  });

  test('that was signed by a retired key is proved by it as well as by the one after it', async () => {
    const rotated = new TestLog([testSigner(2), testSigner(1)]).seal(log.entries);
    const signed = file(formatReceipt({ index: INDEX, hashes, checkpoint: rotated.checkpoint() }));
    const listed = file(`${formatVerifierKey(testSigner(2))}\n${KEY}\n`);
    for (const key of [KEY, formatVerifierKey(testSigner(2)), listed])
      expect(await runForJson('receipt', signed, '--key', key, '--entry', file(entry))).toMatchObject({ code: 0 });
  });
});

describe('the golden receipt of version 1', () => {
  const path = (name: string): string => fileURLToPath(new URL(`./fixtures/${name}`, import.meta.url));
  const [, , golden] = JSON.parse(readFileSync(path('leaves-v1.json'), 'utf8'));
  const args = ['receipt', path('receipt-v1.tlog-proof'), '--key', path('receipt-v1.key'), '--entry'];

  test('proves its entry, for ever', async () => {
    expect(await runForJson(...args, file(golden.members))).toMatchObject({ code: 0, verdict: 'ok' });
  });

  test('is verified by the program that the package names, which says by its exit code what it found', () => {
    const { bin } = JSON.parse(readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8'));
    const program = join(PROJECT_ROOT, bin['decision-ledger-verify']);
    const run = (...given: string[]) => spawnSync(process.execPath, [program, ...given], { encoding: 'utf8' });
    expect(run(...args, file(golden.members))).toMatchObject({ status: 0, stdout: expect.stringMatching(/\nok\n$/) });
    expect(run(...args, file({ ...golden.members, tenant: 'demo2' }))).toMatchObject({
      status: 1,
      stdout: expect.stringMatching(/failed: .*\nfailed\n$/s),
    });
    expect(run(...args.slice(0, -1))).toMatchObject({
      status: 3,
      stdout: expect.stringMatching(/\nincomplete\n$/),
    });
    expect(run('receipt')).toMatchObject({ status: 2, stdout: '' });
    expect(statSync(program).mode & 0o111).toBe(0o111);
  });
});

describe('two checkpoints', () => {
  const at = (size: number) => new TestLog().seal(log.entries.slice(0, size));
  const run = (first: string, second: string, ...options: string[]) =>
    runForJson('consistency', file(first), file(second), '--key', KEY, ...options);
  const proofOf = async (first: number, second: number) => ({
    ...{ first, second },
    hashes: (await consistencyProof(first, second, log.read)).map((hash) => Buffer.from(hash).toString('hex')),
  });

  test('of which one goes on from the other are consistent', async () => {
    const status = { earlier: 'ok', later: 'ok', consistency: 'ok' };
    for (const size of [1, 255, 256, 299]) {
      const proof = file(await proofOf(size, SIZE));
      expect(await run(at(size).checkpoint(), log.checkpoint(), '--proof', proof)).toMatchObject({ code: 0, status });
    }
    expect(await run(log.checkpoint(), log.checkpoint())).toMatchObject({ code: 0, status });
    expect(await run(at(0).checkpoint(), log.checkpoint())).toMatchObject({ code: 0, status });
  });

  test('without a proof are not checked', async () => {
    expect(await run(at(7).checkpoint(), log.checkpoint())).toMatchObject({ code: 3, verdict: 'incomplete' });
  });

  test('of which the second is shorter, forked, of another log, or wrongly proved are not', async () => {
    const proof = await proofOf(7, SIZE);
    const forked = new TestLog().seal([leafBytes(recorded(1_000).leaf), ...log.entries.slice(1, 7)]);
    const wrong: [first: string, second: string, proof: object][] = [
      [log.checkpoint(), at(7).checkpoint(), proof],
      [forked.checkpoint(), log.checkpoint(), proof],
      [at(8).checkpoint(), log.checkpoint(), proof],
      [at(7).checkpoint(), log.checkpoint(), { ...proof, hashes: proof.hashes.slice(1) }],
      [at(7).checkpoint(), log.checkpoint(), { ...proof, hashes: proof.hashes.map(() => 'zz') }],
      [at(7).checkpoint(), log.checkpoint(), {}],
      [at(7).checkpoint().replace('\n7\n', '\n6\n'), log.checkpoint(), proof],
    ];
    for (const [first, second, given] of wrong) expect((await run(first, second, '--proof', file(given))).code).toBe(1);
    expect((await run(log.checkpoint(), at(7).checkpoint())).findings).toContain('had 300 entries, and has 7');
    const name = 'log.example/other';
    const other = new TestLog([testSigner(1, name)]).seal(log.entries).checkpoint(name);
    const keys = ['--key', formatVerifierKey(testSigner(1, name))];
    expect((await run(at(7).checkpoint(), other, '--proof', file(proof), ...keys)).code).toBe(1);
  });
});

describe('the program', () => {
  test.each([
    [[]],
    [['receipt']],
    [['receipt', 'a', 'b', '--key', KEY]],
    [['receipt', '/nowhere', '--key', KEY]],
    [['receipt', '/nowhere']],
    [['receipt', '/nowhere', '--key', 'no key']],
    [['receipt', '/nowhere', '--key', KEY, '--part']],
    [['consistency', 'a', '--key', KEY]],
    [['bundle', '/nowhere', '--key', KEY]],
    [['bundle', folder, '--proof', 'x']],
    [['bundle', folder, '--unknown']],
    [['verify', folder]],
  ])('called with %j exits with 2 and says why', async (args) => {
    const [out, err]: string[][] = [[], []];
    const code = await runVerifier(args, { out: (text) => out?.push(text), err: (text) => err?.push(text) });
    expect([code, out]).toEqual([2, []]);
    expect(err?.join('')).toMatch(/^decision-ledger-verify: \S/);
  });

  test('tells how it is used', async () => {
    const out: string[] = [];
    expect(await runVerifier(['--help'], { out: (text) => out.push(text), err: (text) => out.push(text) })).toBe(0);
    expect(out.join('')).toContain('decision-ledger-verify bundle <folder>');
  });

  test('has nothing to say of a folder without a checkpoint', async () => {
    expect(await runForJson('bundle', folder, '--key', KEY)).toMatchObject({ code: 3, verdict: 'incomplete' });
  });
});
