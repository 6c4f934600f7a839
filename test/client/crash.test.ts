import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { DecisionInputs } from '../../libs/client/src/index.js';
import { BUILD_TIMEOUT_MS, installClient, type Project } from './installed.js';
import { type Ledger, LEDGERS } from './ledgers.js';
import { freshInputs, pause } from './support.js';

interface Life {
  /** Null if it was killed. */
  readonly code: number | null;
  /** What it printed: `{ result, replayed }` or `{ error, state }`; null if it was killed before. */
  readonly said: unknown;
  readonly tookMs: number;
}

let project: Project;
beforeAll(async () => {
  project = await installClient();
  const program = fileURLToPath(new URL('crash-program.mjs', import.meta.url));
  await project.write('program.mjs', await readFile(program, 'utf8'));
}, BUILD_TIMEOUT_MS);
afterAll(() => project?.remove());

describe.each(LEDGERS)('against %s', (_, start) => {
  let ledger: Ledger;
  let folder: string;
  beforeAll(async () => {
    ledger = await start();
  });
  afterAll(() => ledger?.stop());
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'ledger-crash-'));
    ledger.road.seen.length = 0;
  });
  afterEach(() => rm(folder, { recursive: true }));

  async function live(
    inputs: DecisionInputs,
    { dieAt = 'never', killAfterMs, runMs = 0 }: { dieAt?: string; killAfterMs?: number; runMs?: number } = {},
  ): Promise<Life> {
    const { url, token, tenant } = ledger;
    const since = performance.now();
    const child = spawn(process.execPath, [join(project.folder, 'program.mjs')], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        SETTINGS: JSON.stringify({ url, token, tenant }),
        INPUTS: JSON.stringify(inputs),
        STORE: join(folder, 'store'),
        EFFECTS: join(folder, 'effects'),
        DIE_AT: dieAt,
        RUN_MS: String(runMs),
      },
    });
    if (killAfterMs !== undefined) setTimeout(() => child.kill('SIGKILL'), killAfterMs).unref();
    const [said, [code]] = await Promise.all([textOf(child.stdout), once(child, 'exit')]);
    return {
      code: code as number | null,
      said: said === '' ? null : JSON.parse(said),
      tookMs: performance.now() - since,
    };
  }

  /** The leases under which the effect happened, and the downstream keys that it was given. */
  async function effects(): Promise<{ leases: number[]; keys: Set<string> }> {
    const text = await readFile(join(folder, 'effects'), 'utf8').catch(() => '');
    const lines = text.split('\n').filter(Boolean);
    const words = lines.map((line) => line.split(' '));
    return { leases: words.map(([lease]) => Number(lease)), keys: new Set(words.map(([, key = '']) => key)) };
  }

  const bodies = (route: string): Set<string> =>
    new Set(ledger.road.seen.filter((seen) => seen.route === route).map(({ body }) => body));
  const leftovers = (): Promise<string[]> => readdir(join(folder, 'store'));

  test.each(['before register', 'after register'])(
    'killed %s: the same bytes, one run, under the first lease',
    async (dieAt) => {
      const inputs = freshInputs('refund.create');
      expect(await live(inputs, { dieAt })).toMatchObject({ code: null, said: null });
      expect(await leftovers()).toHaveLength(1);
      // The lease is 30 s long: who had to wait for its end would be told so by its number and by the clock.
      const next = await live(inputs);
      expect(next).toMatchObject({ code: 0, said: { result: { number: 1 }, replayed: false } });
      expect(next.tookMs).toBeLessThan(20_000);
      expect((await effects()).leases).toEqual([1]);
      expect(bodies('register').size).toBe(1);
      expect(await leftovers()).toEqual([]);
    },
  );

  test.each(['after the right to run was taken', 'before lease', 'after lease', 'before the effect'])(
    'killed %s: nothing runs under that lease again, the effect happens once under the next',
    async (dieAt) => {
      const inputs = freshInputs('crew.dispatch');
      expect(await live(inputs, { dieAt })).toMatchObject({ code: null });
      expect(await live(inputs)).toMatchObject({ said: { result: { number: 2 } } });
      expect((await effects()).leases).toEqual([2]);
      expect(await leftovers()).toEqual([]);
    },
  );

  test('killed after the effect: it is run again only under the next lease, with the same downstream key', async () => {
    const inputs = freshInputs('crew.dispatch');
    expect(await live(inputs, { dieAt: 'after the effect' })).toMatchObject({ code: null });
    expect(await live(inputs)).toMatchObject({ said: { result: { number: 2 } } });
    const { leases, keys } = await effects();
    expect([leases, keys.size]).toEqual([[1, 2], 1]);
  });

  test('killed after the effect, where the provider knows no keys: OutcomeUnknown, and the effect happened once', async () => {
    const inputs = freshInputs('wire.send');
    expect(await live(inputs, { dieAt: 'after the effect' })).toMatchObject({ code: null });
    expect(await live(inputs)).toMatchObject({ said: { error: 'OutcomeUnknown', state: 'unknown' } });
    expect(await live(inputs)).toMatchObject({ said: { error: 'OutcomeUnknown', state: 'unknown' } });
    expect((await effects()).leases).toEqual([1]);
  });

  test('killed after run, before the completion was sent: the kept outcome is sent, run is not called', async () => {
    const inputs = freshInputs('wire.send');
    expect(await live(inputs, { dieAt: 'before completion' })).toMatchObject({ code: null });
    // The lease is over by then; the last holder may still complete.
    await pause(2_300);
    expect(await live(inputs)).toMatchObject({ said: { result: { number: 1 }, replayed: false } });
    expect((await effects()).leases).toEqual([1]);
    expect(await leftovers()).toEqual([]);
  });

  test('killed after the completion, before its answer was read: the same bytes get the same answer', async () => {
    const inputs = freshInputs('refund.create');
    expect(await live(inputs, { dieAt: 'after completion' })).toMatchObject({ code: null });
    expect(await live(inputs)).toMatchObject({ said: { result: { number: 1 }, replayed: true } });
    expect([(await effects()).leases, bodies('completion').size]).toEqual([[1], 1]);
    expect(await leftovers()).toEqual([]);
  });

  test('two processes at once over one store: one effect', async () => {
    const inputs = freshInputs('refund.create');
    const lives = await Promise.all([1, 2, 3].map(() => live(inputs, { runMs: 200 })));
    expect(lives.map(({ said }) => said)).toEqual(lives.map(() => expect.objectContaining({ result: { number: 1 } })));
    expect((await effects()).leases).toEqual([1]);
  });

  test('killed at any time, again and again: never two effects under one lease, and one outcome', async () => {
    const inputs = freshInputs('crew.dispatch');
    const outcomes: unknown[] = [];
    for (let round = 0; round < 4; round++) {
      const { said } = await live(inputs, { killAfterMs: 80 + Math.random() * 400, runMs: 100 });
      if (said !== null) outcomes.push(said);
    }
    outcomes.push((await live(inputs, { runMs: 100 })).said);
    const { leases, keys } = await effects();
    expect(new Set(leases).size).toBe(leases.length);
    expect(keys.size).toBe(1);
    const results = outcomes.map((said) => JSON.stringify((said as { result?: unknown }).result));
    expect(new Set(results)).toEqual(new Set([JSON.stringify({ number: Math.max(...leases) })]));
  });
});
