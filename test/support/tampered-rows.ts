import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { EMPTY_EDGE, edgeRoot, encodeEntries, grow, leafHash, TILE_WIDTH, tilePath, tileWidth } from '#log';
import type { TestDatabase } from './database.js';
import type { Row } from './tampering.js';

/** The names of a table's columns. */
export const columnsOf = async (database: TestDatabase, table: string): Promise<string[]> =>
  (
    await database.query<{ name: string }>(
      `SELECT column_name AS name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = $1`,
      [table],
    )
  )
    .map(({ name }) => name)
    .toSorted();

/** The leaves of the one log that there is, in its order. */
export const leavesOf = async (database: TestDatabase): Promise<string[]> =>
  (await database.query<{ leaf: string }>('SELECT leaf FROM log_leaf ORDER BY leaf_index')).map(({ leaf }) => leaf);

/** The id of an entry that was never recorded. */
export const INSERTED = '0199d3a1-7c00-7000-8000-000000000000';

/** An entry like another, with a decision and a key of its own. The reading side's copy comes by its trigger. */
export async function insertEntry(database: TestDatabase, { decisionId, ledgerEntryId }: Row): Promise<void> {
  const changes = JSON.stringify({
    ledger_entry_id: INSERTED,
    decision_id: INSERTED,
    idem_key: 'inserted',
    content_once: null,
  });
  for (const [table, id, from] of [
    ['decision_record', 'decision_id', decisionId],
    ['ledger_entry', 'ledger_entry_id', ledgerEntryId],
  ])
    await database.query(
      `INSERT INTO ${table} SELECT (jsonb_populate_record(t, $1::jsonb)).* FROM ${table} t WHERE ${id} = $2`,
      [changes, from],
    );
  await database.query('DELETE FROM unsealed_entry');
}

/** Puts a leaf for the inserted entry at an index, and moves those behind it on. */
export async function insertLeaf(database: TestDatabase, index: number): Promise<void> {
  await database.query('UPDATE log_leaf SET leaf_index = leaf_index + 1000 WHERE leaf_index >= $1', [index]);
  await database.query(
    `INSERT INTO log_leaf (tenant_id, leaf_index, ledger_entry_id, leaf)
     SELECT tenant_id, $1, $2::uuid, replace(leaf, ledger_entry_id::text, $2::uuid::text) FROM log_leaf WHERE leaf_index = 0`,
    [index, INSERTED],
  );
  await database.query('UPDATE log_leaf SET leaf_index = leaf_index - 999 WHERE leaf_index >= 1000');
}

export async function swapLeaves(database: TestDatabase, one: number, other: number): Promise<void> {
  for (const move of [
    [one, -1],
    [other, one],
    [-1, other],
  ])
    await database.query('UPDATE log_leaf SET leaf_index = $2 WHERE leaf_index = $1', move);
}

/** The bundles of entries as somebody writes them who does not mind that some are missing. */
export async function writeBundles(database: TestDatabase, size: number, folder: string): Promise<void> {
  for (let index = 0; index * TILE_WIDTH < size; index += 1) {
    const left = await database.query<{ leaf: string }>(
      'SELECT leaf FROM log_leaf WHERE leaf_index / $2::integer = $1::integer ORDER BY leaf_index',
      [index, TILE_WIDTH],
    );
    const tile = tilePath({ level: 'entries', index, width: tileWidth(size, 'entries', index) });
    mkdirSync(dirname(join(folder, tile)), { recursive: true });
    writeFileSync(join(folder, tile), encodeEntries(left.map(({ leaf }) => Buffer.from(leaf))));
  }
}

/** Hashes the leaves anew, and has all hashes of the tree say so. */
export async function rebuildTree(database: TestDatabase): Promise<void> {
  const leaves = await leavesOf(database);
  const { edge, tiles } = grow(
    EMPTY_EDGE,
    leaves.map((leaf) => leafHash(Buffer.from(leaf))),
  );
  for (const { level, index, bytes } of tiles)
    await database.query('UPDATE log_tile SET hashes = $3 WHERE level = $1 AND tile_index = $2', [level, index, bytes]);
  await database.query('UPDATE log_tree SET root = $1', [edgeRoot(edge)]);
}
