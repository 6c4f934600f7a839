import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openCheckpoint, parseVerifierKey, readCheckpoint } from '#log';
import { inputs, type Service } from '../support/index.js';
import { inclusion } from '../support/log-client.js';
import { setStage, until, type Stage } from '../support/stage.js';

const keyOf = (number: number): string => Buffer.alloc(32, number).toString('base64');

let stage: Stage;
let dataDir: string;
beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'decision-ledger-keys-'));
  stage = await setStage({ env: { WORKER: 'off', DATA_DIR: dataDir } });
});
afterAll(async () => {
  await stage?.clear();
  rmSync(dataDir, { recursive: true, force: true });
});

/** Runs a worker with these settings for as long as something is done. */
async function withWorker<T>(env: Readonly<Record<string, string>>, work: (worker: Service) => Promise<T>): Promise<T> {
  const worker = await stage.addService({ WORKER: 'on', SEAL_INTERVAL_MS: '20', ...env });
  try {
    return await work(worker);
  } finally {
    await worker.stop();
  }
}

const checkpoint = async (): Promise<string> => (await stage.auditor.get('/v1/log/checkpoint')).text;
const listed = async (): Promise<string[]> => (await stage.auditor.get('/v1/log/key')).text.trimEnd().split('\n');
const signatures = (note: string): number => note.match(/^— /gm)?.length ?? 0;

test('without a setting the key is made in DATA_DIR, for its owner alone, and stays', async () => {
  const first = await withWorker({}, async () => {
    await stage.orchestrator.decide({ inputs: inputs() });
    return until(checkpoint, (note) => note.includes('\n1\n'));
  });
  const file = join(dataDir, 'log-signing-key');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const [key = ''] = await listed();
  const made = readFileSync(file, 'utf8');
  await withWorker({}, async () => {
    const { body } = await stage.orchestrator.decide({ inputs: inputs({ params: { second: true } }) });
    await inclusion(stage.auditor, body.ledgerEntryId);
  });

  expect(readFileSync(file, 'utf8')).toBe(made);
  expect(openCheckpoint(first, [parseVerifierKey(key)])).toMatchObject({
    size: 1,
    origin: 'decision-ledger.local/acme',
  });
  expect(openCheckpoint(await checkpoint(), [parseVerifierKey(key)]).size).toBe(2);
  expect(await listed()).toEqual([key]);
});

test('a new key signs beside the old one, an idle log too; then alone; and the retired ones stay listed', async () => {
  const [made = ''] = await listed();
  const old = readFileSync(join(dataDir, 'log-signing-key'), 'utf8').trim();
  const both = await withWorker({ LOG_SIGNING_KEY: keyOf(2), LOG_PREVIOUS_SIGNING_KEY: old }, () =>
    until(checkpoint, (note) => signatures(note) === 2),
  );
  const [second = '', ...others] = await listed();

  expect(others).toEqual([made]);
  for (const key of [made, second]) expect(openCheckpoint(both, [parseVerifierKey(key)]).size).toBe(2);

  const alone = await withWorker({ LOG_SIGNING_KEY: keyOf(2) }, () =>
    until(checkpoint, (note) => signatures(note) === 1),
  );
  expect(openCheckpoint(alone, [parseVerifierKey(second)]).size).toBe(2);
  expect(() => openCheckpoint(alone, [parseVerifierKey(made)])).toThrow();
  expect(await listed()).toEqual([second, made]);

  const back = await withWorker({ LOG_SIGNING_KEY: old }, () => until(checkpoint, (note) => note !== alone));
  expect(openCheckpoint(back, [parseVerifierKey(made)]).size).toBe(2);
  expect(await listed()).toEqual([made, second]);
});

test('another LOG_ORIGIN would be another log: the one that is there is not signed under it', async () => {
  await withWorker({ LOG_ORIGIN: 'elsewhere.example' }, async (worker) => {
    const said = await until(
      async () => worker.output(),
      (text) => text.includes('LOG_ORIGIN'),
    );
    expect(said).toContain('it is called decision-ledger.local/acme');
  });
  expect(readCheckpoint(await checkpoint()).origin).toBe('decision-ledger.local/acme');
});
