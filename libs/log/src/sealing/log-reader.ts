import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { Database, type Transaction } from '#database';
import { recordedAt } from '#ledger';
import { Problem, validationFailed } from '#problem';
import { encodeEntries } from '../pure/entry-bundle.js';
import { leafHash } from '../pure/merkle.js';
import { parseNote } from '../pure/note.js';
import { TILE_WIDTH, tileWidth, type Tile } from '../pure/tile.js';
import { consistencyProof, inclusionProof } from '../pure/tree-proof.js';
import { LogDamaged } from './log-damaged.js';
import { isWaiting, signedTree, tilesOf } from './stored-tree.js';

/** That an entry is in the log, proved against the checkpoint that comes with it. */
export interface InclusionProof {
  readonly leafIndex: number;
  readonly treeSize: number;
  readonly leafHash: Uint8Array;
  readonly hashes: readonly Uint8Array[];
  readonly checkpoint: string;
}

/** How often somebody who waits looks. The sealer needs longer. */
const LOOK_AGAIN_MS = 100;
/** A tenant that was just made has its first checkpoint at the next round of the worker. */
const FIRST_CHECKPOINT_MS = 5_000;

const NOT_PUBLISHED = 'No worker has signed the log of this tenant yet. Is one running?';

/**
 * Answers questions about the log. Everything is answered for the last checkpoint, and nothing for what goes beyond it. What
 * the database has lost of that is answered with Problem `internal`, which names it.
 */
@Injectable()
export class LogReader {
  private readonly logger = new Logger(LogReader.name);

  constructor(private readonly database: Database) {}

  /** The last checkpoint: a signed note. @throws Problem `unavailable` if no worker comes to sign the first one */
  async checkpoint(tenant: string): Promise<string> {
    return this.published(tenant, async (_tx, { checkpoint }) => checkpoint);
  }

  /** The keys that verify checkpoints, the one that signed the last one first. @throws Problem `unavailable`, as above */
  async keys(tenant: string): Promise<string[]> {
    return this.published(tenant, async (tx, { checkpoint }) => {
      const rows = await tx.query<{ key: string }[]>(
        'SELECT verifier_key AS key FROM log_key WHERE tenant_id = $1 ORDER BY added_at DESC, verifier_key',
        [tenant],
      );
      const [signature] = parseNote(checkpoint).signatures;
      const isCurrent = (key: string): boolean => key.startsWith(`${signature?.name}+${signature?.id}+`);
      const keys = rows.map(({ key }) => key);
      return [...keys.filter(isCurrent), ...keys.filter((key) => !isCurrent(key))];
    });
  }

  /** The bytes of a tile of hashes, or of a bundle of entries. @throws Problem `not-found` for one beyond the checkpoint */
  async tile(tenant: string, tile: Tile): Promise<Buffer> {
    const { level, index, width } = tile;
    const bytes = await this.read(tenant, async (tx) => {
      const tree = await signedTree(tx, tenant);
      if (tree === null || width > tileWidth(tree.size, level, index)) return undefined;
      if (level === 'entries') return entryBundle(tx, tenant, index, width);
      const [hashes] = await tilesOf(tx, tenant)([{ level, index, width }]);
      return hashes;
    });
    if (bytes === undefined) throw new Problem('not-found', 'The log has no such tile, or not as wide a one yet.');
    return Buffer.from(bytes);
  }

  /**
   * Proves that an entry is in the log.
   *
   * @param waitMs how long to wait for it to be sealed
   * @throws Problem `not-found`, `not-sealed`
   */
  async inclusion(tenant: string, ledgerEntryId: string, waitMs: number): Promise<InclusionProof> {
    const deadline = performance.now() + waitMs;
    for (;;) {
      const proof = await this.read(tenant, (tx) => inclusionIn(tx, tenant, ledgerEntryId));
      if (proof !== null) return proof;
      if (performance.now() >= deadline)
        throw new Problem('not-sealed', 'The entry is recorded, and no checkpoint covers it yet.', {
          headers: { 'retry-after': '1' },
        });
      await sleep(Math.min(LOOK_AGAIN_MS, Math.max(deadline - performance.now(), 0)));
    }
  }

  /** Proves that the tree of `first` leaves is the beginning of that of `second`. @throws Problem `validation-failed` */
  async consistency(tenant: string, first: number, second: number): Promise<Uint8Array[]> {
    return this.published(tenant, async (tx, { size }) => {
      if (second > size)
        throw validationFailed([
          { pointer: 'second', detail: `is beyond the checkpoint, which is of ${size} entries` },
        ]);
      if (first > second) throw validationFailed([{ pointer: 'first', detail: 'must not be larger than second' }]);
      return consistencyProof(first, second, tilesOf(tx, tenant));
    });
  }

  /** Nothing is answered from the rest of what is damaged. Whoever asked cannot mend it, so the operator is told too. */
  private async read<T>(tenant: string, work: (tx: Transaction) => Promise<T>): Promise<T> {
    try {
      return await this.database.transaction(tenant, work);
    } catch (error) {
      if (!(error instanceof LogDamaged)) throw error;
      this.logger.error(`The tenant ${tenant}: ${error.message} See "When the log stops" in docs/operating.md.`);
      throw new Problem('internal', error.message);
    }
  }

  /** Reads beside the last checkpoint, and waits for the first one. */
  private async published<T>(
    tenant: string,
    read: (tx: Transaction, tree: { size: number; checkpoint: string }) => Promise<T>,
  ): Promise<T> {
    const deadline = performance.now() + FIRST_CHECKPOINT_MS;
    for (;;) {
      const found = await this.read(tenant, async (tx) => {
        const tree = await signedTree(tx, tenant);
        return tree === null ? null : { value: await read(tx, tree) };
      });
      if (found !== null) return found.value;
      if (performance.now() >= deadline)
        throw new Problem('unavailable', NOT_PUBLISHED, { headers: { 'retry-after': '1' } });
      await sleep(LOOK_AGAIN_MS);
    }
  }
}

async function inclusionIn(tx: Transaction, tenant: string, ledgerEntryId: string): Promise<InclusionProof | null> {
  const tree = await signedTree(tx, tenant);
  const sealed = await leafOf(tx, tenant, ledgerEntryId);
  if (tree !== null && sealed !== undefined && sealed.index < tree.size)
    return {
      leafIndex: sealed.index,
      treeSize: tree.size,
      leafHash: leafHash(Buffer.from(sealed.leaf)),
      hashes: await inclusionProof(sealed.index, tree.size, tilesOf(tx, tenant)),
      checkpoint: tree.checkpoint,
    };
  if (sealed !== undefined) return null;
  const at = await recordedAt(tx, tenant, ledgerEntryId);
  if (at === null) throw new Problem('not-found', 'There is no such ledger entry.');
  // Its mark goes in the transaction in which its leaf comes, so one of the two is there, asked in this order.
  const isSound =
    (await isWaiting(tx, tenant, ledgerEntryId, at)) || (await leafOf(tx, tenant, ledgerEntryId)) !== undefined;
  if (!isSound) throw new LogDamaged(`entry ${ledgerEntryId} has no leaf, and does not wait for one either`);
  return null;
}

async function leafOf(
  tx: Transaction,
  tenant: string,
  ledgerEntryId: string,
): Promise<{ index: number; leaf: string } | undefined> {
  const [sealed] = await tx.query<{ index: number; leaf: string }[]>(
    'SELECT leaf_index::double precision AS index, leaf FROM log_leaf WHERE tenant_id = $1 AND ledger_entry_id = $2',
    [tenant, ledgerEntryId],
  );
  return sealed;
}

async function entryBundle(tx: Transaction, tenant: string, index: number, width: number): Promise<Buffer> {
  const first = index * TILE_WIDTH;
  const rows = await tx.query<{ index: number; leaf: string }[]>(
    `SELECT leaf_index::double precision AS index, leaf FROM log_leaf
      WHERE tenant_id = $1 AND leaf_index >= $2::bigint AND leaf_index < $2::bigint + $3 ORDER BY leaf_index`,
    [tenant, first, width],
  );
  if (rows.length < width) {
    const there = new Set(rows.map(({ index: leafIndex }) => leafIndex));
    const lacking = Array.from({ length: width }, (_, at) => first + at).find((leafIndex) => !there.has(leafIndex));
    throw LogDamaged.of({ level: 'entries', index, width }, `lacks entry ${lacking}`);
  }
  return encodeEntries(rows.map(({ leaf }) => Buffer.from(leaf)));
}
