import { afterAll, describe, expect, test } from '@jest/globals';
import sigstoreCheckpoint from '@sigstore/verify/dist/tlog/checkpoint.js';
import sigstoreMerkle from '@sigstore/verify/dist/tlog/merkle.js';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { consistencyProof, formatVerifierKey, inclusionProof, leafHash, type SignerKey } from '#log';
import { ORIGIN, TestLog, testSigner } from '../support/log.js';

const SIZES = [1, 2, 3, 255, 256, 257, 700];
const leaf = (index: number): Buffer => Buffer.from(`{"entry":${index}}`);
const leaves = Array.from({ length: 700 }, (_, index) => leaf(index));
const signers = [testSigner(1), testSigner(2)];
const stranger = testSigner(3);

/** Logs of these sizes, sealed in batches of 100, whose partial tiles are all there. */
const logs = SIZES.map((size) => {
  const log = new TestLog(signers);
  while (log.size < size) log.seal(leaves.slice(log.size, Math.min(log.size + 100, size)));
  return log;
});

function damaged(bytes: Uint8Array): Buffer {
  const copy = Buffer.from(bytes);
  copy[0] = (copy[0] ?? 0) ^ 1;
  return copy;
}

/** Some leaves of a log, its borders among them. */
const indexesOf = ({ size }: TestLog): number[] =>
  [...new Set([0, 1, 254, 255, 256, size >> 1, size - 1])].filter((index) => index < size);

describe('@sigstore/verify', () => {
  const trust = ({ name, id, publicKey }: SignerKey) => ({
    logID: Buffer.from(id.padEnd(64, '0'), 'hex'),
    baseURL: `https://${name}`,
    publicKey,
    validFor: { start: new Date(0), end: new Date(0) },
  });
  const head = (envelope: string, keys: readonly SignerKey[]) =>
    Reflect.apply(sigstoreCheckpoint.verifyCheckpoint, undefined, [
      { inclusionProof: { checkpoint: { envelope } } },
      keys.map(trust),
    ]);

  test('accepts our checkpoints by the old key and by the new one, and no tampered ones', () => {
    for (const log of logs) {
      const note = log.checkpoint();
      for (const signer of signers)
        expect(head(note, [signer])).toMatchObject({
          origin: ORIGIN,
          logSize: BigInt(log.size),
          logHash: Buffer.from(log.root),
        });
      expect(() => head(note, [stranger])).toThrow('invalid checkpoint signature');
      expect(() => head(note.replace(`\n${log.size}\n`, `\n${log.size + 1}\n`), signers)).toThrow(
        'invalid checkpoint signature',
      );
    }
  });

  test('accepts our proofs of inclusion, and no tampered ones', async () => {
    for (const log of logs) {
      const checkpoint = head(log.checkpoint(), signers);
      for (const index of indexesOf(log)) {
        const hashes = await inclusionProof(index, log.size, log.read);
        const accepts = (logIndex: number, body: Buffer, proof: readonly Uint8Array[]): boolean => {
          const entry = { inclusionProof: { logIndex: String(logIndex), hashes: proof }, canonicalizedBody: body };
          try {
            Reflect.apply(sigstoreMerkle.verifyMerkleInclusion, undefined, [entry, checkpoint]);
            return true;
          } catch {
            return false;
          }
        };
        expect(accepts(index, leaf(index), hashes)).toBe(true);
        expect(accepts(index, leaf(index + 1), hashes)).toBe(false);
        expect(accepts(log.size, leaf(index), hashes)).toBe(false);
        for (const [at, hash] of hashes.entries())
          expect(accepts(index, leaf(index), hashes.with(at, damaged(hash)))).toBe(false);
      }
    }
  });
});

/** Where Debian's golang-golang-x-mod-dev puts what the program needs. */
const GOPATH = '/usr/share/gocode';
const hasGo = existsSync(join(GOPATH, 'src/golang.org/x/mod/sumdb/tlog')) && runs('go', ['version']);
const describeGo = hasGo ? describe : describe.skip;
if (!hasGo) console.warn('SKIPPED: golang.org/x/mod/sumdb. Go or golang-golang-x-mod-dev is not installed.');

describeGo('golang.org/x/mod/sumdb', () => {
  const folder = mkdtempSync(join(tmpdir(), 'decision-ledger-go-'));
  const program = join(folder, 'verify');
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('accepts our notes, proofs and tiles, and no tampered ones', async () => {
    const environment = { ...process.env, GOPATH, GO111MODULE: 'off', GOFLAGS: '', GOCACHE: join(folder, 'cache') };
    const source = fileURLToPath(new URL('./foreign/verify.go', import.meta.url));
    execFileSync('go', ['build', '-o', program, source], { env: environment, stdio: 'inherit' });

    const cases: { good: boolean; kind: string; [member: string]: unknown }[] = [];
    for (const log of logs) {
      const tree = { size: log.size, root: log.root };
      const note = log.checkpoint();
      for (const keys of [[signers[0]], [signers[1]], signers, [stranger, signers[1]]])
        cases.push({ good: true, kind: 'note', note, keys: keys.map(keyText), ...tree });
      cases.push({ good: false, kind: 'note', note, keys: [keyText(stranger)], ...tree });
      cases.push({
        good: false,
        kind: 'note',
        note: note.replace('acme\n', 'acne\n'),
        keys: [keyText(signers[0])],
        ...tree,
      });

      const place = join(folder, String(log.size));
      log.writeTo(place);
      for (const index of indexesOf(log)) {
        const proof = await inclusionProof(index, log.size, log.read);
        const inclusion = { kind: 'inclusion', ...tree, index, leaf: leaf(index), proof };
        cases.push({ good: true, ...inclusion }, { good: false, ...inclusion, leaf: leaf(index + 1) });
        for (const [at, hash] of proof.entries())
          cases.push({ good: false, ...inclusion, proof: proof.with(at, damaged(hash)) });
        const tiles = { ...inclusion, kind: 'tiles', folder: place, first: log.size, firstRoot: log.root };
        cases.push({ good: true, ...tiles }, { good: false, ...tiles, root: damaged(log.root) });
      }
      for (const earlier of logs.filter(({ size }) => size <= log.size)) {
        const proof = await consistencyProof(earlier.size, log.size, log.read);
        const consistency = { kind: 'consistency', ...tree, first: earlier.size, firstRoot: earlier.root, proof };
        cases.push({ good: true, ...consistency }, { good: false, ...consistency, root: damaged(log.root) });
        cases.push({ good: false, ...consistency, firstRoot: damaged(earlier.root) });
        for (const [at, hash] of proof.entries())
          cases.push({ good: false, ...consistency, proof: proof.with(at, damaged(hash)) });
      }
    }
    const tampered = new TestLog(signers).seal(leaves.slice(0, 300));
    const proof = await inclusionProof(7, 300, tampered.read);
    const tiles = { kind: 'tiles', size: 300, root: tampered.root, index: 7, leaf: leaf(7), proof };
    const [whole, broken] = ['whole', 'broken'].map((name) => join(folder, name));
    tampered.writeTo(whole ?? '');
    tampered.files.set('tile/0/000', damaged(tampered.files.get('tile/0/000') ?? leafHash(leaf(0))));
    tampered.writeTo(broken ?? '');
    cases.push({ good: true, ...tiles, folder: whole }, { good: false, ...tiles, folder: broken });

    const input = JSON.stringify(cases, (_name, value) =>
      value?.type === 'Buffer' ? Buffer.from(value.data).toString('base64') : value,
    );
    const answers: string[] = JSON.parse(execFileSync(program, { input }).toString('utf8'));
    const wrong = cases.filter(({ good }, at) => good !== (answers[at] === ''));
    expect(wrong).toEqual([]);
    expect(cases.filter(({ good }) => good).length).toBeGreaterThan(100);
    expect(cases.filter(({ good }) => !good).length).toBeGreaterThan(300);
  });

  const keyText = (key: SignerKey | undefined): string => (key === undefined ? '' : formatVerifierKey(key));
});

function runs(program: string, args: readonly string[]): boolean {
  try {
    execFileSync(program, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
