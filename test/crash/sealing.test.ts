import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { edgeRoot, EMPTY_EDGE, grow, leafHash, readCheckpoint, readLeaf } from '#log';
import type { Auditable } from '../support/audit.js';
import { Callers } from '../support/callers.js';
import { EmbeddedHouse } from '../support/embedded.js';
import { inputs, type Client, type Service } from '../support/index.js';
import { inclusion } from '../support/log-client.js';
import { IS_LONG, rounds, seeded, until } from '../support/rounds.js';
import { setStage, type Stage } from '../support/stage.js';

const STOPPED = /not sealed further/;

let made = 0;
async function record(caller: Client, count = 5): Promise<string> {
  let id = '';
  for (let n = 0; n < count; n += 1) {
    const { body } = await caller.decide({ inputs: inputs({ params: { n: made++ } }) });
    id = body.ledgerEntryId;
  }
  return id;
}

describe('the restore of an old backup', () => {
  let stage: Stage;
  /** Where the worker keeps what it signed last: the backup does not reach it. */
  let dataDir: string;
  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'decision-ledger-witness-'));
    stage = await setStage({ env: { WORKER: 'off' } });
  });
  afterEach(async () => {
    await stage?.clear();
    rmSync(dataDir, { recursive: true, force: true });
  });

  /** A worker with an API, so that its metrics can be asked. */
  const startWorker = (env: Readonly<Record<string, string>> = {}): Promise<Service> =>
    stage.addService({ WORKER: 'on', DATA_DIR: dataDir, SEAL_INTERVAL_MS: '20', SWEEP_INTERVAL_SECONDS: '1', ...env });
  const metrics = async (url: string): Promise<string> => (await fetch(`${url}/metrics`)).text();
  const key = (): string => readFileSync(join(dataDir, 'log-signing-key'), 'utf8').trim();
  /** Elsewhere, with the same key: a machine that has signed nothing yet. */
  const startElsewhere = async (): Promise<{ stop(): Promise<void> }> => {
    const folder = mkdtempSync(join(tmpdir(), 'decision-ledger-elsewhere-'));
    const worker = await startWorker({ DATA_DIR: folder, LOG_SIGNING_KEY: key() });
    return {
      async stop() {
        await worker.stop();
        rmSync(folder, { recursive: true, force: true });
      },
    };
  };

  test('stops the log and says so; decisions go on; a newer backup lets it go on, and so does an operator', async () => {
    let worker = await startWorker();
    await inclusion(stage.auditor, await record(stage.orchestrator));
    await worker.stop();
    const old = await stage.database.backUp();
    worker = await startWorker();
    await inclusion(stage.auditor, await record(stage.orchestrator));
    await worker.stop();
    const recent = await stage.database.backUp();

    await old.restore();
    worker = await startWorker();
    await until('it says so', async () => STOPPED.test(worker.output()));
    expect(worker.output()).toContain('10 entries were signed');
    expect(worker.output()).toContain('the restore of an old backup');
    const unsealed = await record(stage.orchestrator, 1);
    const reply = await inclusion(stage.auditor, unsealed, { prefer: 'wait=2' });
    expect([reply.status, reply.body.code]).toEqual([409, 'not-sealed']);
    expect(readCheckpoint((await stage.auditor.get('/v1/log/checkpoint')).text).size).toBe(5);
    expect(await metrics(worker.url)).toContain('log_trees_stopped 1');
    // It was said once, not at every round.
    expect(worker.output().match(new RegExp(STOPPED, 'g'))).toHaveLength(1);
    await worker.stop();

    await recent.restore();
    worker = await startWorker();
    expect((await inclusion(stage.auditor, await record(stage.orchestrator))).status).toBe(200);
    await worker.stop();

    await old.restore();
    worker = await startWorker();
    await until('it says so again', async () => STOPPED.test(worker.output()));
    const [file = ''] = readdirSync(join(dataDir, 'log'));
    expect(worker.output()).toContain(file);
    rmSync(join(dataDir, 'log', file));
    expect((await inclusion(stage.auditor, await record(stage.orchestrator))).status).toBe(200);
    await until('the metric is back', async () => (await metrics(worker.url)).includes('log_trees_stopped 0'));
    await worker.stop();
    await Promise.all([old.drop(), recent.drop()]);
  });

  test('is found out also when the log has meanwhile grown elsewhere, to the same size and beyond', async () => {
    let worker = await startWorker();
    await inclusion(stage.auditor, await record(stage.orchestrator));
    const backup = await worker.stop().then(() => stage.database.backUp());
    worker = await startWorker();
    await inclusion(stage.auditor, await record(stage.orchestrator));
    await worker.stop();
    for (const more of IS_LONG ? [5, 9] : [5]) {
      await backup.restore();
      const elsewhere = await startElsewhere();
      await inclusion(stage.auditor, await record(stage.orchestrator, more));
      await elsewhere.stop();

      worker = await startWorker();
      await until('it says so', async () => STOPPED.test(worker.output()));
      expect(worker.output()).toContain('the first 10 entries of the database are not those that were signed');
      await worker.stop();
    }
    await backup.drop();
  });

  const CHANGES: readonly (readonly [what: string, sql: string])[] = [
    ['a hash of a tile', `UPDATE log_tile SET hashes = overlay(hashes PLACING sha256('x') FROM 33)`],
    ['a tile that is gone', 'DELETE FROM log_tile'],
    ['a checkpoint that is none', `UPDATE log_tree SET checkpoint = 'x'`],
    ['another root', `UPDATE log_tree SET root = sha256('x')`],
    [
      'a tree that is cut off',
      `UPDATE log_tree SET tree_size = 3, signed_size = 3, root = sha256('x'), checkpoint = replace(checkpoint, E'\\n5\\n', E'\\n3\\n')`,
    ],
  ];
  // Each takes a stage of its own: a part is enough where the whole is not asked for.
  test.each(IS_LONG ? CHANGES : CHANGES.slice(-2))(
    'what was changed in the database (%s) is not signed over',
    async (_what, sql) => {
      const worker = await startWorker();
      await inclusion(stage.auditor, await record(stage.orchestrator));
      await stage.database.query(sql);
      await record(stage.orchestrator);
      await until('it says so', async () => STOPPED.test(worker.output()));
      expect(await stage.database.count('SELECT count(*) FROM log_leaf')).toBe(5);
    },
  );

  test('a key that nobody chose does not replace the one that signed before', async () => {
    const first = await startWorker();
    await inclusion(stage.auditor, await record(stage.orchestrator));
    await first.stop();
    const { text: before } = await stage.auditor.get('/v1/log/key');
    rmSync(join(dataDir, 'log-signing-key'));
    const second = await startWorker();
    await record(stage.orchestrator);
    await until('it says so', async () => /Set LOG_SIGNING_KEY/.test(second.output()));
    expect((await stage.auditor.get('/v1/log/key')).text).toBe(before);
  });
});

describe('kill -9', () => {
  const KILLS = rounds(20);
  const embedded = new EmbeddedHouse();
  let callers: Callers;
  let service: Service;
  beforeEach(() => {
    callers = new Callers(2);
  });
  afterEach(async () => {
    await callers.stop();
    await service?.stop();
    embedded.remove();
  });

  async function rebuilt(database: Auditable): Promise<unknown> {
    const rows = await database.query<{ leaf: string; id: string }>(
      `SELECT leaf, ledger_entry_id AS id FROM log_leaf ORDER BY leaf_index`,
    );
    const wrong = rows.filter(({ leaf, id }) => readLeaf(Buffer.from(leaf)).ledgerEntryId !== id);
    const { edge } = grow(
      EMPTY_EDGE,
      rows.map(({ leaf }) => leafHash(Buffer.from(leaf))),
    );
    return { wrong, size: edge.size, root: Buffer.from(edgeRoot(edge)).toString('hex') };
  }

  test('of the service and the database while they seal: no entry is lost, and what was signed stands', async () => {
    const draw = seeded(23);
    const seen: string[] = [];
    const entriesNow = async (): Promise<number> => (await embedded.database.query('SELECT FROM ledger_entry')).length;
    for (let kill = 0; kill < KILLS; kill += 1) {
      service = await embedded.start({ SEAL_INTERVAL_MS: '10' });
      const { orchestrator: token } = embedded.tokens();
      const calls = Array.from({ length: 2_000 }, () => ({
        url: service.url,
        token,
        body: {
          inputs: inputs({
            action: 'sar.file',
            subject: { type: 'case', id: `C-${made++}` },
            params: { amount: '10.00', reportingPeriod: '2026-11-30' },
          }),
        },
      }));
      const before = await entriesNow();
      const sending = callers.send(calls, 8);
      await until('some entries', async () => (await entriesNow()) > before);
      // Not a wait for anything: the instant of the kill is what is drawn.
      await sleep(draw() * 1_000);
      const postmaster = embedded.postmaster();
      const rows = await embedded.database.query<{ checkpoint: string }>(
        'SELECT checkpoint FROM log_tree WHERE checkpoint IS NOT NULL',
      );
      seen.push(...rows.map(({ checkpoint }) => checkpoint));
      await service.kill();
      if (postmaster !== null && kill % 2 === 0) process.kill(postmaster, 'SIGKILL');
      await sending;
    }
    service = await embedded.start({ SEAL_INTERVAL_MS: '10' });
    await until('everything is sealed', async () => {
      const left = await embedded.database.query(
        `SELECT FROM unsealed_entry UNION ALL SELECT FROM log_tree WHERE signed_size < tree_size OR checkpoint IS NULL`,
      );
      return left.length === 0;
    });
    const [{ entries, checkpoint } = { entries: 0, checkpoint: '' }] = await embedded.database.query<{
      entries: number;
      checkpoint: string;
    }>('SELECT (SELECT count(*)::integer FROM ledger_entry) AS entries, checkpoint FROM log_tree');
    const { size, root } = readCheckpoint(checkpoint);

    expect(entries).toBeGreaterThan(0);
    expect(await rebuilt(embedded.database)).toEqual({
      wrong: [],
      size: entries,
      root: Buffer.from(root).toString('hex'),
    });
    expect(size).toBe(entries);
    for (const note of seen) expect(readCheckpoint(note).size).toBeLessThanOrEqual(size);
    expect(service.output()).not.toMatch(STOPPED);
  });
});
