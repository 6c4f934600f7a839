import { readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { TILE_WIDTH } from '#log';
import type { TestDatabase } from '../support/index.js';
import { all, runForJson } from '../support/log-verify.js';
import * as fields from '../support/tampered-fields.js';
import {
  columnsOf,
  INSERTED,
  insertEntry,
  insertLeaf,
  leavesOf,
  rebuildTree,
  swapLeaves,
  writeBundles,
} from '../support/tampered-rows.js';
import {
  decide,
  isNamed,
  namedEntries,
  nameOf,
  Original,
  SIZE,
  sorted,
  unnamed,
  type Copy,
  type Row,
  type Verified,
} from '../support/tampering.js';

let original: Original;
beforeAll(async () => {
  original = await Original.make();
});
afterEach(() => original?.clearCopies());
afterAll(() => original?.clear());

test('a copy that nobody tampered with is ok in every check, and incomplete without any one of its files', async () => {
  const copy = await original.copy();
  expect(original.rows.map(({ leafIndex }) => leafIndex)).toEqual(Array.from({ length: SIZE }, (_, index) => index));
  for (const earlier of ['early', 'late'] as const)
    expect(await copy.verify(earlier)).toEqual({ code: 0, status: all('ok'), findings: [] });

  const bundle = join(copy.folder, readdirSync(copy.folder).find((name) => name.startsWith('bundle-')) ?? '');
  const files = readdirSync(bundle, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'key')
    .map((entry) => join(entry.parentPath, entry.name));
  expect(files).toHaveLength(11);
  for (const file of files) {
    renameSync(file, `${file}.away`);
    const { code, status } = await runForJson('bundle', bundle, ...original.kept('late'));
    expect([file, code, Object.values(status)]).toEqual([file, 3, expect.arrayContaining(['not checked'])]);
    renameSync(`${file}.away`, file);
  }
});

describe('a column that was changed is named with its entry:', () => {
  test.each([
    ['ledger_entry', 'ledger_entry_id', fields.OF_ENTRY, fields.NOT_COVERED_OF_ENTRY],
    ['decision_record', 'decision_id', fields.OF_DECISION, fields.NOT_COVERED_OF_DECISION],
  ] as const)('each of %s that a leaf covers', async (table, id, changes, others) => {
    const copy = await original.copy();
    expect([...Object.keys(changes), ...others].toSorted()).toEqual(await columnsOf(copy.database, table));
    const changed = Object.entries(changes).map(([column, { to, check, of }]) => ({
      ...{ column, to, check },
      row: original.take(of),
    }));
    for (const { column, to, row } of changed)
      await copy.database.query(`UPDATE ${table} SET ${column} = ${to} WHERE ${id} = $1`, [
        id === 'decision_id' ? row.decisionId : row.ledgerEntryId,
      ]);

    const verified = await copy.verify();
    expect(verified.code).toBe(1);
    const inBundle = changed.filter(({ check }) => check !== 'inclusion');
    expect(inBundle.filter(({ check, row }) => !isNamed(verified, check, nameOf(row)))).toEqual([]);
    expect(sorted(namedEntries(verified))).toEqual(sorted(inBundle.map(({ row }) => row.leafIndex)));
    // An export does not say who recorded a decision. The entry does, and is compared with its receipt.
    for (const { row } of changed.filter(({ check }) => check === 'inclusion'))
      await expectConvictedByReceipt(copy, row);
  });
});

async function expectConvictedByReceipt(copy: Copy, row: Row): Promise<void> {
  const verified = await copy.verifyReceipt(original.receipt(row), row);
  expect([verified.code, unnamed(verified, 'inclusion', [nameOf(row)])]).toEqual([1, []]);
}

// The verifier lists 20 findings of a check, so it is asked about half of the members at a time.
test.each([0, 1])('each member of a leaf that was changed is named with its index (half %#)', async (half) => {
  const copy = await original.copy();
  const leaves = await leavesOf(copy.database);
  const members = forgeriesAt(leaves, 0).map(({ member }) => member);
  expect(members).toHaveLength(27);
  const changed = members.flatMap((member, at) => (at % 2 === half ? [{ member, index: 100 + at * 5 }] : []));
  for (const { member, index } of changed) {
    const forged = forgeriesAt(leaves, index).find((forgery) => forgery.member === member)?.forged;
    await copy.database.query('UPDATE log_leaf SET leaf = $2 WHERE leaf_index = $1', [index, forged]);
  }
  const verified = await copy.verify();
  expect([verified.code, verified.status['tree'], verified.status['earlier']]).toEqual([1, 'failed', 'failed']);
  expect(changed.filter(({ index }) => !isNamed(verified, 'tiles', `entry ${index} `))).toEqual([]);
});

const forgeriesAt = (leaves: readonly string[], index: number): ReturnType<typeof fields.forgeries> =>
  fields.forgeries(leaves[index] ?? '');

test('entries that were deleted are named: the last three, and one in the middle', async () => {
  const copy = await original.copy();
  const gone = [100, SIZE - 3, SIZE - 2, SIZE - 1];
  for (const table of ['ledger_entry', 'recorded_decision'])
    await copy.database.query(
      `DELETE FROM ${table} WHERE ledger_entry_id IN (SELECT ledger_entry_id FROM log_leaf WHERE leaf_index = ANY ($1))`,
      [gone],
    );
  await copy.database.query('DELETE FROM log_leaf WHERE leaf_index = ANY ($1)', [gone]);
  const named = (verified: Verified, check: string): string[] =>
    gone.map(String).filter((index) => isNamed(verified, check, `entry ${index} is `));

  // The service gives out no bundle that is not whole.
  const verified = await copy.verify();
  expect([verified.code, verified.status['entries']]).toEqual([1, 'not checked']);
  expect(named(verified, 'rows')).toEqual(gone.map(String));

  // Whoever gives out what is left, by other means, does not get further.
  const served = await copy.verify('late', (bundle) => writeBundles(copy.database, SIZE, bundle));
  expect(served.code).toBe(1);
  for (const check of ['entries', 'rows']) expect(named(served, check)).toEqual(gone.map(String));
});

test('an entry that was put in between, two that were swapped, and one that has the content of another are named', async () => {
  const { database, verify } = await tampered(async (database) => {
    await insertEntry(database, original.row(0));
    await insertLeaf(database, 300);
    await swapLeaves(database, 50, 60);
    await database.query(
      `UPDATE log_leaf SET leaf = (SELECT leaf FROM log_leaf WHERE leaf_index = 70) WHERE leaf_index = 80`,
    );
  });
  expect(await database.count('SELECT count(*) FROM log_leaf')).toBe(SIZE + 1);
  const verified = await verify();
  expect(verified.code).toBe(1);
  const [fifty, sixty] = [original.row(50).ledgerEntryId, original.row(60).ledgerEntryId];
  const seventy = original.row(70).ledgerEntryId;
  expect(
    unnamed(verified, 'tiles', [
      `entry 300 (${INSERTED}) has not the hash`,
      `entry 50 (${sixty}) has not the hash`,
      `entry 60 (${fifty}) has not the hash`,
      `entry 80 (${seventy}) has not the hash`,
    ]),
  ).toEqual([]);
  expect(unnamed(verified, 'keys', [`entry 80 (${seventy}) has the key of entry 70`])).toEqual([]);
});

/** A copy after a tampering. */
async function tampered(
  tamper: (database: TestDatabase) => Promise<unknown>,
): Promise<{ copy: Copy; database: TestDatabase; verify: Copy['verify'] }> {
  const copy = await original.copy();
  await tamper(copy.database);
  return { copy, database: copy.database, verify: (earlier) => copy.verify(earlier) };
}

test('what hides an entry, mixes two up, or changes a hash of a tile is named', async () => {
  const [deleted, unshown, hidden, twice] = [10, 11, 12, 13].map((index) => original.row(index));
  const swapped = [original.row(SIZE - 1), original.row(SIZE - 2)];
  const { verify } = await tampered(async (database) => {
    await database.query('DELETE FROM ledger_entry WHERE ledger_entry_id = $1', [deleted?.ledgerEntryId]);
    const copyOf = 'WHERE ledger_entry_id = $1';
    await database.query(`DELETE FROM recorded_decision ${copyOf}`, [unshown?.ledgerEntryId]);
    await database.query(`UPDATE recorded_decision SET decision_id = gen_random_uuid() ${copyOf}`, [
      hidden?.ledgerEntryId,
    ]);
    await database.query(
      `UPDATE ledger_entry a SET result = b.result FROM ledger_entry b WHERE a.ledger_entry_id IN ($1, $2) AND b.ledger_entry_id IN ($1, $2)
          AND a.ledger_entry_id <> b.ledger_entry_id`,
      swapped.map(({ ledgerEntryId }) => ledgerEntryId),
    );
    await database.query(
      `UPDATE log_tile SET hashes = overlay(hashes PLACING sha256('x') FROM $1::integer) WHERE level = 0 AND tile_index = 0`,
      [32 * (twice?.leafIndex ?? 0) + 1],
    );
    await database.query(`UPDATE log_tile SET hashes = sha256('x') WHERE level = 1`);
  });
  const verified = await verify();
  expect(verified.code).toBe(1);
  const lost = [deleted, unshown, hidden].map((row) => `entry ${row?.leafIndex} (${row?.ledgerEntryId}) is in the log`);
  expect(unnamed(verified, 'rows', lost)).toEqual([]);
  expect(unnamed(verified, 'digests', swapped.map(nameOf))).toEqual([]);
  const hashes = [`entry ${twice?.leafIndex} (`, `another hash for the entries 0 to ${TILE_WIDTH - 1}`];
  expect(unnamed(verified, 'tiles', hashes)).toEqual([]);
});

test('what cannot be read or was never sealed is incomplete, never ok', async () => {
  const copy = await original.copy();
  const erased = original.take(({ externalRef }) => externalRef !== null);
  await insertEntry(copy.database, original.row(0));
  await copy.database.query('UPDATE ledger_entry SET result = NULL WHERE ledger_entry_id = $1', [erased.ledgerEntryId]);
  const incomplete = { ...all('ok'), rows: 'not checked', digests: 'not checked' };
  const verified = await copy.verify();
  expect([verified.code, verified.status]).toEqual([3, incomplete]);
  const told = verified.findings.map(({ check, what }) => `${check}: ${what}`);
  expect(told.filter((line) => line.includes(INSERTED) && line.startsWith('rows'))).toHaveLength(1);
  expect(told.filter((line) => line.includes(nameOf(erased)) && line.startsWith('digests'))).toHaveLength(1);

  await copy.database.query('REVOKE SELECT ON log_tile FROM decision_ledger_service');
  const untiled = await copy.verify();
  expect([untiled.code, untiled.status]).toEqual([3, { ...incomplete, tiles: 'not checked' }]);
  await copy.database.query('REVOKE SELECT ON decision_record FROM decision_ledger_service');
  const unexported = await copy.verify();
  expect([unexported.code, unexported.status['rows'], unexported.status['export']]).toEqual([
    ...[3, 'not checked', 'not checked'],
  ]);
});

test('a checkpoint that says another size, or has others served than it says, is named', async () => {
  const copy = await original.copy();
  await copy.database.query('UPDATE log_tree SET signed_size = signed_size - 3');
  const shorter = await copy.verify();
  const last = [SIZE - 3, SIZE - 2, SIZE - 1];
  expect(
    unnamed(
      shorter,
      'rows',
      last.map((index) => `entry ${index} is in the log, but not in the export`),
    ),
  ).toEqual([]);
  expect(shorter.code).toBe(1);

  await copy.database.query(
    `UPDATE log_tree SET signed_size = tree_size, checkpoint = replace(checkpoint, E'\\n${SIZE}\\n', E'\\n40\\n')`,
  );
  const unsigned = await copy.verify();
  expect([unsigned.code, unsigned.status]).toEqual([
    1,
    { ...all('not checked'), key: 'ok', checkpoint: 'failed', earlier: 'ok' },
  ]);
});

describe('an entry that was changed everywhere is convicted by what was kept,', () => {
  const FORGE = `UPDATE ledger_entry SET external_ref = 'forged' WHERE ledger_entry_id = $1`;

  test('by who has no key: the root and the receipt', async () => {
    const copy = await original.copy();
    const row = original.take(({ externalRef }) => externalRef !== null);
    await copy.database.query(FORGE, [row.ledgerEntryId]);
    await copy.database.query('UPDATE log_leaf SET leaf = replace(leaf, $1, $2) WHERE leaf_index = $3', [
      `"externalRef":"${row['externalRef']}"`,
      '"externalRef":"forged"',
      row.leafIndex,
    ]);
    await rebuildTree(copy.database);

    const verified = await copy.verify();
    expect([verified.code, verified.status]).toEqual([1, { ...all('ok'), tree: 'failed', earlier: 'failed' }]);
    expect(unnamed(verified, 'tree', [`The root of the first ${SIZE} entries`])).toEqual([]);
    // It was after the earlier of the two checkpoints, so that one tells where it was not.
    expect((await copy.verify('early')).status).toEqual({ ...all('ok'), tree: 'failed' });
    await expectConvictedByReceipt(copy, row);
  });

  test('by who has the log sealed and signed anew with the real key: the checkpoint and the receipt', async () => {
    const copy = await original.copy();
    const row = original.take(({ externalRef }) => externalRef !== null);
    await copy.database.query(FORGE, [row.ledgerEntryId]);
    for (const table of ['log_leaf', 'log_tile']) await copy.database.query(`DELETE FROM ${table}`);
    await copy.database.query(
      `UPDATE log_tree SET tree_size = 0, root = sha256(''), signed_size = 0, checkpoint = NULL, signed_at = NULL`,
    );
    await copy.database.query(
      'INSERT INTO unsealed_entry SELECT tenant_id, recorded_at, ledger_entry_id FROM ledger_entry',
    );
    await copy.serve('with the real key');
    await copy.signed(SIZE);

    const verified = await copy.verify();
    expect([verified.code, verified.status]).toEqual([1, { ...all('ok'), earlier: 'failed' }]);
    expect(unnamed(verified, 'earlier', [`The root of the first ${SIZE} entries`])).toEqual([]);
    await expectConvictedByReceipt(copy, row);
  });
});

test('an old backup that was put back is convicted by the checkpoint that was kept, also when it has grown again', async () => {
  const copy = await original.copy('backup');
  const { orchestrator } = await copy.serve('with the real key');
  const cut = await copy.verify();
  expect([cut.code, cut.status]).toEqual([1, { ...all('ok'), earlier: 'failed' }]);
  expect(unnamed(cut, 'earlier', ['lacks the entries from 40 on'])).toEqual([]);

  await decide(orchestrator, 1_000, 1_300);
  await copy.signed(340);
  const grown = await copy.verify();
  expect([grown.code, grown.status]).toEqual([1, { ...all('ok'), earlier: 'failed' }]);
  expect(unnamed(grown, 'earlier', [`The root of the first ${SIZE} entries`])).toEqual([]);
  expect((await copy.verify('early')).code).toBe(0);
});
