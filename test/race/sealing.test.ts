import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { edgeRoot, EMPTY_EDGE, grow, leafHash, readCheckpoint, readLeaf } from '#log';
import { Callers, type Call } from '../support/callers.js';
import { inputs } from '../support/index.js';
import { holds, inclusion } from '../support/log-client.js';
import { rounds, seeded, until } from '../support/rounds.js';
import { setStage, type Cast, type Stage } from '../support/stage.js';
import { startLoneWorker, type LoneWorker } from '../support/worker.js';

const WORKERS = 3;
const PROOFS = rounds(5_000);
const PROVERS = 4;
const WRITERS_A_PROCESS = 8;
const CALLS_AT_ONCE = 400;
const LONGEST_LIFE_MS = 1_500;
const KEY = Buffer.alloc(32, 5).toString('base64');

let stage: Stage;
let globex: Cast;
let callers: Callers;
/** One for each worker, as if each ran on a machine of its own. */
let dataDirs: readonly string[];
let workers: LoneWorker[];
beforeAll(async () => {
  stage = await setStage({ env: { WORKER: 'off', DATABASE_POOL_SIZE: '10' } });
  globex = await stage.addTenant('globex');
  await globex.admin.put('/v1/actions/note.add', { execution: 'transactional' });
  dataDirs = Array.from({ length: WORKERS }, () => mkdtempSync(join(tmpdir(), 'decision-ledger-sealing-')));
  callers = new Callers(4);
  workers = await Promise.all(dataDirs.map(startWorker));
});
afterAll(async () => {
  await callers?.stop();
  await Promise.all((workers ?? []).map((worker) => worker.kill()));
  await stage?.clear();
  for (const dir of dataDirs ?? []) rmSync(dir, { recursive: true, force: true });
});

const startWorker = (dataDir: string): Promise<LoneWorker> =>
  startLoneWorker({
    DATABASE_URL: stage.database.url,
    DATABASE_POOL_SIZE: '3',
    DATA_DIR: dataDir,
    LOG_SIGNING_KEY: KEY,
    SEAL_INTERVAL_MS: '20',
    LOG_LEVEL: 'warn',
  });

let made = 0;
function newCalls(casts: readonly Cast[], count: number): Call[] {
  return Array.from({ length: count }, (_, n) => {
    const token = casts[n % casts.length]?.tokens.orchestrator ?? '';
    return { url: stage.service.url, token, body: { inputs: inputs({ params: { n: made++ } }) } };
  });
}

/** What the log of a tenant has of its entries, and which of them it lacks or has twice. */
async function logOf(tenant: string): Promise<{ hashes: Buffer[]; entries: number; checkpoint: string }> {
  const leaves = await stage.database.query<{ leaf: string; index: number; id: string }>(
    `SELECT leaf, leaf_index::integer AS index, ledger_entry_id AS id FROM log_leaf WHERE tenant_id = $1 ORDER BY leaf_index`,
    [tenant],
  );
  expect(leaves.map(({ index }) => index)).toEqual(leaves.map((_, place) => place));
  for (const { leaf, id } of leaves) {
    const { ledgerEntryId, tenant: owner } = readLeaf(Buffer.from(leaf));
    if (ledgerEntryId !== id || owner !== tenant) throw new Error(`${leaf} is not that of ${tenant} and ${id}`);
  }
  const [tree] = await stage.database.query<{ checkpoint: string; entries: number }>(
    `SELECT checkpoint, (SELECT count(DISTINCT g.ledger_entry_id)::integer FROM ledger_entry l JOIN log_leaf g USING (tenant_id, ledger_entry_id)
                          WHERE l.tenant_id = t.tenant_id) AS entries FROM log_tree t WHERE tenant_id = $1`,
    [tenant],
  );
  if (tree === undefined) throw new Error(`${tenant} has no tree`);
  return { hashes: leaves.map(({ leaf }) => leafHash(Buffer.from(leaf))), ...tree };
}

async function allSealed(): Promise<void> {
  await until(
    'everything is sealed',
    async () =>
      (await stage.database.count('SELECT count(*) FROM unsealed_entry')) === 0 &&
      (await stage.database.count('SELECT count(*) FROM log_tree WHERE signed_size < tree_size')) === 0,
    60_000,
  );
}

test('the first entries of a tenant, from 10 clients at once and to several workers, make one tree', async () => {
  const fresh = await stage.addTenant('fresh');
  await fresh.admin.put('/v1/actions/note.add', { execution: 'transactional' });
  const replies = await callers.send(newCalls([fresh], 10));
  expect(replies.map(({ status }) => status)).toEqual(Array(10).fill(201));
  await allSealed();
  expect(await stage.database.count(`SELECT count(*) FROM log_tree WHERE tenant_id = 'fresh'`)).toBe(1);
  const { hashes, entries, checkpoint } = await logOf('fresh');
  expect([hashes.length, entries, readCheckpoint(checkpoint).size]).toEqual([10, 10, 10]);
});

test('32 writers for two tenants, workers killed at random: dense indexes, no fork, every entry once, every proof holds', async () => {
  const casts = [stage, globex];
  const draw = seeded(32);
  let isOver = false;
  const statuses = new Set<number>();
  async function write(): Promise<void> {
    while (!isOver)
      for (const { status } of await callers.send(newCalls(casts, CALLS_AT_ONCE), WRITERS_A_PROCESS))
        statuses.add(status);
  }
  let kills = 0;
  async function kill(): Promise<void> {
    while (!isOver) {
      // Not a wait for anything: the instant of the kill is what is drawn.
      await sleep(draw() * LONGEST_LIFE_MS);
      const place = Math.floor(draw() * WORKERS);
      await workers[place]?.kill();
      workers[place] = await startWorker(dataDirs[place] ?? '');
      kills += 1;
    }
  }
  const published = new Map(casts.map(({ tenant }) => [tenant, new Set<string>()]));
  let proofs = 0;
  async function prove(n: number): Promise<void> {
    const { tenant, auditor } = casts[n % casts.length] ?? stage;
    while (proofs < PROOFS) {
      const entries = await stage.database.query<{ id: string }>(
        `SELECT ledger_entry_id AS id FROM ledger_entry WHERE tenant_id = $1 ORDER BY recorded_at DESC OFFSET $2 LIMIT 10`,
        [tenant, Math.floor(draw() * 500)],
      );
      for (const { id } of entries) {
        const { status, body } = await inclusion(auditor, id);
        if (status !== 200 || !(await holds(auditor, body)))
          throw new Error(`${id}: ${status} ${JSON.stringify(body)}`);
        published.get(tenant)?.add(body.checkpoint);
        proofs += 1;
      }
    }
  }
  const background = [write(), kill()];
  await Promise.race([Promise.all(Array.from({ length: PROVERS }, (_, n) => prove(n))), ...background]).finally(() => {
    isOver = true;
  });
  await Promise.all(background);
  await allSealed();

  expect([...statuses]).toEqual([201]);
  expect(proofs).toBeGreaterThanOrEqual(PROOFS);
  expect(kills).toBeGreaterThan(1);
  for (const { tenant } of casts) {
    const { hashes, entries, checkpoint } = await logOf(tenant);
    const total = await stage.database.count(`SELECT count(*) FROM ledger_entry WHERE tenant_id = '${tenant}'`);
    expect([tenant, hashes.length, entries]).toEqual([tenant, total, total]);
    const seen = [checkpoint, ...(published.get(tenant) ?? [])].map(readCheckpoint);
    expect(seen[0]?.size).toBe(total);
    // Each checkpoint that anybody was shown is of the beginning of the one tree.
    let edge = EMPTY_EDGE;
    for (const { size, root } of seen.toSorted((one, other) => one.size - other.size)) {
      ({ edge } = grow(edge, hashes.slice(edge.size, size)));
      expect([size, Buffer.from(root)]).toEqual([size, Buffer.from(edgeRoot(edge))]);
    }
  }
  expect(workers.map((worker) => worker.output()).join('')).not.toMatch(/not sealed further/);
});
