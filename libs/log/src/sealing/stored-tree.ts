import type { Transaction } from '#database';
import { leavesOf } from '#ledger';
import { edgeOf, edgeTiles, type Edge } from '../pure/edge.js';
import { HASH_BYTES, split } from '../pure/merkle.js';
import type { HashTile, WrittenTile } from '../pure/tile.js';
import type { TileReader } from '../pure/tree-proof.js';
import { LogDamaged } from './log-damaged.js';

/** A tenant's tree as the database has it. */
export interface StoredTree {
  readonly logId: string;
  readonly size: number;
  readonly root: Buffer;
  readonly signedSize: number;
  /** The signed note; null before the first. */
  readonly checkpoint: string | null;
}

/** Numbers beyond 2^53 do not come up: that many entries are not written in a lifetime. */
const TREE = `log_id AS "logId", tree_size::double precision AS size, root, signed_size::double precision AS "signedSize", checkpoint`;

/** The tree, held until the transaction ends; null while somebody else holds it. */
export async function holdTree(tx: Transaction, tenant: string): Promise<StoredTree | null> {
  const [tree] = await tx.query<StoredTree[]>(
    `SELECT ${TREE} FROM log_tree WHERE tenant_id = $1 FOR UPDATE SKIP LOCKED`,
    [tenant],
  );
  return tree ?? null;
}

/** The tree as it was signed last; null before the first time. */
export async function signedTree(
  tx: Transaction,
  tenant: string,
): Promise<{ size: number; checkpoint: string } | null> {
  const [tree] = await tx.query<{ size: number; checkpoint: string }[]>(
    `SELECT signed_size::double precision AS size, checkpoint FROM log_tree WHERE tenant_id = $1 AND checkpoint IS NOT NULL`,
    [tenant],
  );
  return tree ?? null;
}

/** Reads tiles in one statement, each to the width that is asked for. @throws LogDamaged if one is not there so far */
export function tilesOf(tx: Transaction, tenant: string): TileReader {
  return async (tiles) => {
    const rows = await tx.query<{ level: number; index: number; hashes: Buffer }[]>(
      `SELECT level, tile_index::double precision AS index, hashes FROM log_tile
        WHERE tenant_id = $1 AND (level, tile_index) IN (SELECT * FROM unnest($2::integer[], $3::bigint[]))`,
      [tenant, tiles.map(({ level }) => level), tiles.map(({ index }) => index)],
    );
    const found = new Map(rows.map(({ level, index, hashes }) => [`${level}/${index}`, hashes]));
    return tiles.map((tile: HashTile) => {
      const { level, index, width } = tile;
      const hashes = (found.get(`${level}/${index}`) ?? Buffer.alloc(0)).subarray(0, width * HASH_BYTES);
      const count = Math.floor(hashes.length / HASH_BYTES);
      if (count < width) throw LogDamaged.of(tile, `has ${count} of ${width} hashes`);
      return hashes;
    });
  };
}

/** The edge of the tree of `size` leaves, by which it grows. @throws LogDamaged if a tile of it is not there so far */
export async function edgeIn(tx: Transaction, tenant: string, size: number): Promise<Edge> {
  return edgeOf(size, await tilesOf(tx, tenant)(edgeTiles(size)));
}

/** Entries that were given their place in a tree. */
export interface Placed {
  /** How many marks were taken. */
  readonly taken: number;
  /** The hashes of the leaves, in the order of their places. There are fewer if an entry is not there, or makes no leaf. */
  readonly hashes: readonly Buffer[];
  /** The first of the leaves, to be looked at; null if there is none. */
  readonly sample: string | null;
}

/**
 * Takes the marks of the entries that were recorded first and appends their leaves, from the index `first` on. Whoever does
 * so holds the tree, so nobody else takes any.
 *
 * The leaves stay where they are: one statement reads the entries, makes their leaves, keeps them and hashes them. To have
 * them here and send them back costs as much again, and most of it in a process that answers requests meanwhile.
 */
export async function placeUnsealed(tx: Transaction, tenant: string, first: number, most: number): Promise<Placed> {
  const [placed] = await tx.query<{ taken: number; hashes: Buffer | null; sample: string | null }[]>(PLACE, [
    tenant,
    first,
    most,
  ]);
  return {
    taken: placed?.taken ?? 0,
    hashes: split(placed?.hashes ?? Buffer.alloc(0)),
    sample: placed?.sample ?? null,
  };
}

const PLACE = `
  WITH taken AS (
    DELETE FROM unsealed_entry WHERE tenant_id = $1 AND ctid = ANY (ARRAY(
      SELECT u.ctid FROM unsealed_entry u WHERE u.tenant_id = $1 ORDER BY u.recorded_at, u.ledger_entry_id LIMIT $3))
    RETURNING recorded_at, ledger_entry_id
  ), placed AS (
    SELECT ledger_entry_id, $2::bigint + row_number() OVER (ORDER BY recorded_at, ledger_entry_id) - 1 AS leaf_index FROM taken
  ), made AS MATERIALIZED (${leavesOf('placed')}
  ), appended AS (
    INSERT INTO log_leaf (tenant_id, leaf_index, ledger_entry_id, leaf)
    SELECT $1, leaf_index, ledger_entry_id, leaf FROM made WHERE leaf IS NOT NULL ORDER BY leaf_index
  )
  SELECT (SELECT count(*)::integer FROM taken) AS taken,
         string_agg(sha256('\\x00'::bytea || convert_to(leaf, 'UTF8')), ''::bytea ORDER BY leaf_index) AS hashes,
         max(leaf) FILTER (WHERE leaf_index = $2) AS sample
    FROM made WHERE leaf IS NOT NULL`;

/** Whether an entry has its mark still. */
export async function isWaiting(
  tx: Transaction,
  tenant: string,
  ledgerEntryId: string,
  recordedAt: string,
): Promise<boolean> {
  const rows = await tx.query<unknown[]>(
    'SELECT FROM unsealed_entry WHERE tenant_id = $1 AND ledger_entry_id = $2 AND recorded_at = $3::timestamptz',
    [tenant, ledgerEntryId, recordedAt],
  );
  return rows.length > 0;
}

/** Writes tiles that are new or have grown. @throws if one would change what it had */
export async function writeTiles(tx: Transaction, tenant: string, tiles: readonly WrittenTile[]): Promise<void> {
  const written = await tx.query<unknown[]>(
    `INSERT INTO log_tile (tenant_id, level, tile_index, hashes)
     SELECT $1, n.level, n.index, n.hashes FROM unnest($2::integer[], $3::bigint[], $4::bytea[]) n(level, index, hashes)
     ON CONFLICT ON CONSTRAINT log_tile_pkey DO UPDATE SET hashes = excluded.hashes
      WHERE substring(excluded.hashes FOR octet_length(log_tile.hashes)) = log_tile.hashes
     RETURNING level`,
    [tenant, tiles.map(({ level }) => level), tiles.map(({ index }) => index), tiles.map(({ bytes }) => bytes)],
  );
  if (written.length !== tiles.length) throw new Error(`A tile of ${tenant} would not grow but change.`);
}
