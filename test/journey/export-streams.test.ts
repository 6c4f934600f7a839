import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AccessView } from '#ledger';
import { inputs, type Client } from '../support/index.js';
import { proxyTo, type Proxy } from '../support/proxy.js';
import { readNdjson } from '../support/reading.js';
import { IS_LONG } from '../support/rounds.js';
import { readSlowly, type SlowReader } from '../support/slow-reader.js';
import { clientsOf, type Service } from '../support/service.js';
import { setStage, until, type Stage } from '../support/stage.js';

/** More than the sockets of this machine hold between them, so that an export cannot be done before it is read. */
const SIZE = IS_LONG ? 20_000 : 5_000;
const TEXT_LENGTH = 3_500;
/** What a reader may cost, however much there is to read: a page of rows as they come, as objects, and as text. */
const MOST_BYTES_EACH = 16 * 1024 * 1024;

let stage: Stage;
let proxy: Proxy;
/** With a single connection, by way of the proxy. */
let service: Service;
let auditor: Client;
let orchestrator: Client;
beforeAll(async () => {
  stage = await setStage();
  proxy = await proxyTo(stage.database.url);
  service = await stage.addService({ DATABASE_URL: proxy.url, DATABASE_POOL_SIZE: '1', WORKER: 'off' });
  ({ auditor, orchestrator } = clientsOf(service.url, stage.tokens));
  for (let n = 0; n < SIZE; n += 250) {
    const decisions = Array.from({ length: 250 }, (_, m) => ({
      inputs: inputs({ subject: { type: 'bulk', id: `${n + m}` }, params: { text: 'p'.repeat(TEXT_LENGTH) } }),
      note: 'n'.repeat(TEXT_LENGTH),
    }));
    const { status } = await stage.orchestrator.post('/v1/decisions/batch', { decisions });
    expect(status).toBe(200);
  }
}, 300_000);
afterAll(async () => {
  proxy?.close();
  await stage?.clear();
});

const readers: SlowReader[] = [];
afterEach(() => readers.splice(0).forEach((reader) => reader.leave()));

const QUERY = '/v1/exports/decisions?subjectType=bulk';
async function startExport(query = QUERY): Promise<SlowReader> {
  const reader = await readSlowly(auditor, query);
  expect(reader.status).toBe(200);
  readers.push(reader);
  return reader;
}

const residentBytes = (): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${service.pid}/status`, 'utf8'))?.[1]) * 1024;

/** The exports in the log, the newest first. */
async function exportsInLog(): Promise<AccessView[]> {
  const { body } = await stage.auditor.get('/v1/access-log?route=/v1/exports/decisions&order=desc');
  return body.items;
}

test('slow readers hold no connection, and what they have not read yet is not held in memory', async () => {
  // The memory that one quick export takes is there before it is looked at.
  expect(readNdjson((await auditor.get(QUERY)).text)).toHaveLength(SIZE);
  const before = residentBytes();
  const slow = [await startExport(), await startExport(), await startExport(), await startExport()];
  let most = 0;
  for (let second = 0; second < 4; second += 1) {
    await Promise.all(slow.map((reader) => reader.read(64 * 1024)));
    most = Math.max(most, residentBytes());
    const decided = await orchestrator.decide({ inputs: inputs({ subject: { type: 'between', id: `${second}` } }) });
    expect(decided.status).toBe(201);
    expect((await auditor.get('/v1/decisions?subjectType=between')).body.items).toHaveLength(second + 1);
    await sleep(250);
  }
  expect(most - before).toBeLessThan(slow.length * MOST_BYTES_EACH);
  const { text, isWhole } = await (slow[0] ?? (await startExport())).rest();
  expect(isWhole).toBe(true);
  expect(readNdjson(text)).toHaveLength(SIZE);
});

test('an export is in the log of accesses before its first byte, and its end when it has come to it', async () => {
  const reader = await startExport(`${QUERY}&order=desc`);
  expect((await exportsInLog())[0]).toMatchObject({
    filters: { subjectType: 'bulk', order: 'desc' },
    method: 'GET',
    route: '/v1/exports/decisions',
    rows: null,
    finished: false,
  });
  await reader.rest();
  expect((await exportsInLog())[0]).toMatchObject({ rows: SIZE, finished: true });
});

test('a connection that is broken off shows in the log, and the last row’s cursor gives exactly the rest', async () => {
  const reader = await startExport();
  await reader.read(512 * 1024);
  reader.leave();
  const [ended] = await until(exportsInLog, ([first]) => typeof first?.rows === 'number');
  expect(ended?.finished).toBe(false);
  expect(ended?.rows).toBeLessThan(SIZE);
  const { text } = await reader.rest();
  // What came behind the last line feed is no row.
  const rows = text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
  expect(rows.length).toBeGreaterThan(10);
  expect(rows.length).toBeLessThan(SIZE);
  const rest = readNdjson((await auditor.get(`${QUERY}&cursor=${rows.at(-1).cursor}`)).text);
  expect([...rows, ...rest].map(({ subject }) => Number(subject.id)).toSorted((a, b) => a - b)).toEqual(
    Array.from({ length: SIZE }, (_, n) => n),
  );
});

test('where the database dies in the middle, the file has no trailer, and the log says that it was not finished', async () => {
  const reader = await startExport();
  await reader.read(256 * 1024);
  proxy.cut();
  const { text, isWhole } = await reader.rest();
  proxy.mend();
  expect(isWhole).toBe(false);
  expect(text).not.toContain('"trailer"');
  expect(await exportsInLog()).toEqual(expect.arrayContaining([expect.objectContaining({ finished: false })]));
  expect((await exportsInLog())[0]?.finished).toBe(false);
  const again = await until(
    () => auditor.get('/v1/decisions?limit=1'),
    ({ status }) => status === 200,
  );
  expect(again.status).toBe(200);
});

test('where the database is away when it is asked for, an export is a problem and no file', async () => {
  proxy.cut();
  const reply = await auditor.get(QUERY);
  proxy.mend();
  expect([reply.status, reply.body.code]).toEqual([503, 'unavailable']);
});
