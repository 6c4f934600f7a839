import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { inputs, type Reply } from '../support/index.js';
import { bytesOf, holds, inclusion } from '../support/log-client.js';
import { setStage, until, type Stage } from '../support/stage.js';

const ENTRIES = 300;

let stage: Stage;
/** In the order of the log. */
let entries: string[];
beforeAll(async () => {
  stage = await setStage({ env: { SEAL_INTERVAL_MS: '50' } });
  const decisions = Array.from({ length: ENTRIES }, (_, n) => ({ inputs: inputs({ params: { n } }) }));
  const { body } = await stage.orchestrator.post('/v1/decisions/batch', { decisions });
  for (const { body: one } of body.items) await inclusion(stage.auditor, one.ledgerEntryId);
  const rows = await stage.database.query<{ id: string }>(
    'SELECT ledger_entry_id AS id FROM log_leaf ORDER BY leaf_index',
  );
  entries = rows.map(({ id }) => id);
});
afterAll(() => stage?.clear());

const entry = (index: number): string => entries[index] ?? '';

/** What a superuser takes out of the table, while `look` looks; it is put back afterwards. */
async function without(table: string, damage: string, look: () => Promise<void>): Promise<void> {
  await stage.database.query(`CREATE TABLE kept AS SELECT * FROM ${table}`);
  await stage.database.query(damage);
  try {
    await look();
  } finally {
    await stage.database.query(`DELETE FROM ${table}`);
    await stage.database.query(`INSERT INTO ${table} SELECT * FROM kept`);
    await stage.database.query('DROP TABLE kept');
  }
}

/** That it is refused as what it is, names what is not there, and is told to the operator too. */
async function expectDamage(reply: Reply, what: string): Promise<void> {
  expect([reply.status, reply.body?.code, reply.body?.retryable]).toEqual([500, 'internal', true]);
  expect(reply.headers.get('cache-control')).toBe(null);
  expect(reply.body.detail).toContain(what);
  const output = async (): Promise<string> => stage.service.output();
  expect(await until(output, (text) => text.includes(what))).toContain(what);
}

const tile = (path: string): Promise<Reply> => stage.auditor.get(`/v1/log/tile/${path}`);

test.each([
  ['is gone', 'DELETE FROM log_tile WHERE level = 0 AND tile_index = 0', 0],
  ['is too short', 'UPDATE log_tile SET hashes = substring(hashes FOR 32) WHERE level = 0 AND tile_index = 0', 1],
])('a tile that %s is never served, nor a proof made without it', async (_what, damage, left) => {
  const whole = await bytesOf(stage.auditor, '/v1/log/tile/0/000');
  await without('log_tile', damage, async () => {
    const said = `tile/0/000 has ${left} of 256 hashes`;
    await expectDamage(await tile('0/000'), said);
    await expectDamage(await tile('0/000.p/2'), `tile/0/000.p/2 has ${left} of 2 hashes`);
    await expectDamage(await inclusion(stage.auditor, entry(7)), said);
    await expectDamage(await stage.auditor.get(`/v1/log/proofs/consistency?first=7&second=${ENTRIES}`), said);
    // What there is of it is as good as ever, and so is what does not need it.
    if (left > 0) expect(await bytesOf(stage.auditor, '/v1/log/tile/0/000.p/1')).toEqual(whole.subarray(0, 32));
    expect((await tile('0/001.p/44')).status).toBe(200);
    expect((await inclusion(stage.auditor, entry(ENTRIES - 1))).status).toBe(200);
  });
  expect(await bytesOf(stage.auditor, '/v1/log/tile/0/000')).toEqual(whole);
  expect(await holds(stage.auditor, (await inclusion(stage.auditor, entry(7))).body)).toBe(true);
});

test('so is one of a higher level', async () => {
  await without('log_tile', 'DELETE FROM log_tile WHERE level = 1', async () => {
    await expectDamage(await tile('1/000.p/1'), 'tile/1/000.p/1 has 0 of 1 hashes');
    await expectDamage(await inclusion(stage.auditor, entry(ENTRIES - 1)), 'tile/1/000.p/1');
  });
});

test.each([
  ['all are gone', 'DELETE FROM log_leaf WHERE leaf_index < 256', 0],
  ['one in the middle is gone', 'DELETE FROM log_leaf WHERE leaf_index = 100', 100],
  ['the last is gone', 'DELETE FROM log_leaf WHERE leaf_index = 255', 255],
])('a bundle of which %s is never served', async (_what, damage, first) => {
  await without('log_leaf', damage, async () => {
    await expectDamage(await tile('entries/000'), `tile/entries/000 lacks entry ${first}`);
    expect((await tile('entries/001.p/44')).status).toBe(200);
    if (first > 0) expect((await tile(`entries/000.p/${first}`)).status).toBe(200);
    // It was sealed, so it is not one that has yet to be.
    await expectDamage(await inclusion(stage.auditor, entry(first)), entry(first));
  });
  expect((await tile('entries/000')).status).toBe(200);
  expect((await inclusion(stage.auditor, entry(first))).status).toBe(200);
});
