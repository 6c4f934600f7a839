import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readCheckpoint, runVerifier, TILE_WIDTH } from '#log';
import { inputs } from '../support/index.js';
import { inclusion } from '../support/log-client.js';
import { gatherBundle } from '../support/log-gather.js';
import { setStage, TRANSACTIONAL, type Stage } from '../support/stage.js';

const ONCE = { ...TRANSACTIONAL, uniqueness: 'subject' };
const ENTRIES = 300;

let stage: Stage;
let folder: string;
/** The entry that was recorded last. */
let last: string;
beforeAll(async () => {
  stage = await setStage({
    env: { SEAL_INTERVAL_MS: '50' },
    actions: { 'note.add': TRANSACTIONAL, 'case.close': ONCE },
  });
  folder = mkdtempSync(join(tmpdir(), 'decision-ledger-bundle-'));
  await record(0, 20);
  keep('earlier', await text('/v1/log/checkpoint'));
  await record(20, ENTRIES);
  keep('key', await text('/v1/log/key'));
  keep('checkpoint', await text('/v1/log/checkpoint'));
});
afterAll(async () => {
  await stage?.clear();
  rmSync(folder, { recursive: true, force: true });
});

/** Decisions with and without a note, applied and refused; and waits until they are sealed. */
async function record(from: number, to: number): Promise<void> {
  const decisions = Array.from({ length: to - from }, (_, at) => {
    const n = from + at;
    const action = n % 3 === 0 ? 'case.close' : 'note.add';
    const subject = { type: 'case', id: `Straße-${n % 10}` };
    return {
      inputs: inputs({ action, subject, params: { n, deep: [{ z: 1e-7, a: 'é\u2028' }] } }),
      ...(n % 2 === 0 ? { note: `n° ${n} "😀"` } : {}),
    };
  });
  const { body } = await stage.orchestrator.post('/v1/decisions/batch', { decisions });
  last = body.items.at(-1).body.ledgerEntryId;
  await inclusion(stage.auditor, last);
}

const text = async (path: string, headers = {}): Promise<string> => (await stage.auditor.get(path, headers)).text;

function keep(file: string, content: string | Buffer): string {
  const path = join(folder, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  return path;
}

const at = (file: string): string => join(folder, file);

async function verify(...args: readonly string[]): Promise<{ code: number; said: string }> {
  let said = '';
  const write = (part: string): void => void (said += part);
  const code = await runVerifier([...args, '--key', at('key')], { out: write, err: write });
  return { code, said };
}

test('what is downloaded is a bundle in which the verifier finds everything in order', async () => {
  const { size } = readCheckpoint(await text('/v1/log/checkpoint'));
  expect(size).toBe(ENTRIES);
  expect(size).toBeGreaterThan(TILE_WIDTH);
  await gatherBundle(stage.auditor, folder, ['note.add', 'case.close']);

  const { code, said } = await verify('bundle', folder, '--earlier', at('earlier'));
  expect([code, said]).toEqual([0, expect.stringMatching(/\nok\n$/)]);
  expect(said).not.toMatch(/failed|not checked/);
});

test('so is a receipt, beside its entry', async () => {
  const receipt = keep(
    'receipt',
    await text(`/v1/log/proofs/inclusion?ledgerEntryId=${last}`, { accept: 'text/plain', prefer: 'wait=30' }),
  );
  const entry = keep('entry.json', await text(`/v1/ledger/entries/${last}`));
  expect((await verify('receipt', receipt, '--entry', entry)).said).toMatch(/ok/);
  const other = await text('/v1/ledger/entries?limit=1');
  const wrong = keep('wrong.json', JSON.stringify(JSON.parse(other).items[0]));
  expect((await verify('receipt', receipt, '--entry', wrong)).code).toBe(1);
});

test('and so are two checkpoints with the proof between them', async () => {
  const [first, second] = [20, ENTRIES];
  const proof = keep('proof.json', await text(`/v1/log/proofs/consistency?first=${first}&second=${second}`));
  const { code, said } = await verify('consistency', at('earlier'), at('checkpoint'), '--proof', proof);
  expect([code, said]).toEqual([0, expect.stringMatching(/\nok\n$/)]);
});
