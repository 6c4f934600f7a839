import type { Database, Transaction } from '#database';
import { readCheckpoint, signCheckpoint } from '../pure/checkpoint.js';
import { edgeRoot, grow, type Edge } from '../pure/edge.js';
import { readLeaf } from '../pure/leaf.js';
import { LogError } from '../pure/log-error.js';
import { isEqual, leafHash } from '../pure/merkle.js';
import { parseNote } from '../pure/note.js';
import { formatVerifierKey, type SignerKey } from '../pure/note-key.js';
import { treeRoot } from '../pure/tree-proof.js';
import { LogDamaged } from './log-damaged.js';
import { LogStopped } from './log-stopped.js';
import { SigningKeys, type LogSettings } from './signing-keys.js';
import { edgeIn, holdTree, placeUnsealed, tilesOf, writeTiles, type StoredTree } from './stored-tree.js';
import { Witness, type TreeHead } from './witness.js';

/** Enough to be fast, and so few that no transaction is long. */
const BATCH = 1_000;

/** How far sealing is behind, over all tenants. */
export interface SealingLag {
  readonly unsealed: number;
  readonly lagSeconds: number;
}

/**
 * Gives committed entries their place in the tree, and signs it. Any number of sealers may run: they take turns at the
 * tree's row, and the primary key of the leaves makes a second tree impossible. The write path waits for none of it.
 */
export class Sealer {
  private readonly keys: SigningKeys;
  private readonly witness: Witness;

  /** @throws SettingError for a key that cannot be read */
  constructor(
    private readonly database: Database,
    settings: LogSettings,
  ) {
    this.keys = new SigningKeys(settings);
    this.witness = new Witness(settings.dataDir);
  }

  /**
   * Seals the next entries of a tenant, if nobody else is at it: the tree grows and is committed, and what is committed is
   * signed. Where nothing is new, nothing is signed, unless the checkpoint lacks a signature of ours.
   *
   * @returns whether there may be more to seal at once
   * @throws LogStopped if the database contradicts what was signed before
   */
  async seal(tenant: string): Promise<boolean> {
    try {
      const added = await this.database.transaction(tenant, (tx) => this.grow(tx, tenant));
      await this.database.transaction(tenant, (tx) => this.sign(tx, tenant));
      return added === BATCH;
    } catch (error) {
      // An entry or a checkpoint that is none: this service did not write it so.
      throw error instanceof LogError ? new LogStopped(tenant, error.message) : error;
    }
  }

  /** The tenants that have something to seal or to sign. */
  async agenda(tenants: readonly string[]): Promise<string[]> {
    const rows = await this.database.statement<{ tenant: string }>(
      'SELECT tenant FROM sealing_agenda($1) AS a(tenant)',
      [tenants],
    );
    return rows.map(({ tenant }) => tenant);
  }

  async lag(tenants: readonly string[]): Promise<SealingLag> {
    const [row] = await this.database.statement<SealingLag>(
      'SELECT unsealed, lag_seconds AS "lagSeconds" FROM sealing_lag($1)',
      [tenants],
    );
    return row ?? { unsealed: 0, lagSeconds: 0 };
  }

  private async grow(tx: Transaction, tenant: string): Promise<number> {
    const tree = await holdTree(tx, tenant);
    if (tree === null) return 0;
    await this.check(tx, tenant, tree);
    const { taken, hashes, sample } = await placeUnsealed(tx, tenant, tree.size, BATCH);
    if (taken === 0) return 0;
    if (hashes.length !== taken) throw new LogStopped(tenant, 'an entry that was to be sealed is not there.');
    lookAt(sample, hashes[0]);
    const { edge, tiles } = grow(await edgeOfTree(tx, tenant, tree), hashes);
    await writeTiles(tx, tenant, tiles);
    await tx.query('UPDATE log_tree SET tree_size = $2, root = $3 WHERE tenant_id = $1', [
      tenant,
      edge.size,
      edgeRoot(edge),
    ]);
    return taken;
  }

  private async sign(tx: Transaction, tenant: string): Promise<void> {
    const tree = await holdTree(tx, tenant);
    const signers = this.keys.signersOf(tenant);
    if (tree === null || (tree.signedSize === tree.size && isSignedBy(tree.checkpoint, signers))) return;
    await this.check(tx, tenant, tree);
    await this.introduce(tx, tenant, signers);
    await this.witness.write(tenant, tree.logId, tree);
    const checkpoint = signCheckpoint({ origin: this.keys.originOf(tenant), ...tree }, signers);
    await tx.query(
      'UPDATE log_tree SET signed_size = tree_size, checkpoint = $2, signed_at = clock_timestamp() WHERE tenant_id = $1',
      [tenant, checkpoint],
    );
  }

  /** Everything that was signed, as the database has it and as this machine remembers it, must be the beginning of the tree. */
  private async check(tx: Transaction, tenant: string, tree: StoredTree): Promise<void> {
    const signed = tree.checkpoint === null ? null : readCheckpoint(tree.checkpoint);
    if (signed !== null && signed.origin !== this.keys.originOf(tenant))
      throw new LogStopped(tenant, `it is called ${signed.origin}, and LOG_ORIGIN would have it called otherwise.`);
    const witnessed = await this.witness.read(tenant, tree.logId);
    const file = this.witness.fileOf(tenant, tree.logId);
    if (witnessed !== null && witnessed.size > tree.size)
      throw new LogStopped(
        tenant,
        `${witnessed.size} entries were signed, as ${file} says, and the database has ${tree.size} of them. It looks like the restore of an old backup.`,
      );
    if (witnessed !== null && !(await isBeginning(tx, tenant, tree, witnessed)))
      throw new LogStopped(
        tenant,
        `the first ${witnessed.size} entries of the database are not those that were signed, as ${file} says.`,
      );
    if (signed !== null && !(await isBeginning(tx, tenant, tree, signed)))
      throw new LogStopped(tenant, `its tiles contradict its last checkpoint, of ${signed.size} entries.`);
  }

  /** Lists the keys that verify what is signed now. Nobody's choice of a key must not replace one that is known. */
  private async introduce(tx: Transaction, tenant: string, signers: readonly SignerKey[]): Promise<void> {
    const rows = await tx.query<{ key: string }[]>('SELECT verifier_key AS key FROM log_key WHERE tenant_id = $1', [
      tenant,
    ]);
    const known = rows.map(({ key }) => key);
    const own = signers.map(formatVerifierKey);
    if (this.keys.isMade && known.length > 0 && !own.some((key) => known.includes(key)))
      throw new LogStopped(tenant, 'it is signed with another key than the one in DATA_DIR. Set LOG_SIGNING_KEY.');
    const added = own.filter((key) => !known.includes(key));
    if (added.length === 0) return;
    await tx.query('INSERT INTO log_key (tenant_id, verifier_key) SELECT $1, unnest($2::text[])', [tenant, added]);
  }
}

/**
 * What is sealed is sealed for good. What an entry may be, the constraints of its columns say; that its leaf is made of it as
 * everybody else will read it is seen by one leaf of each batch, as the verifier reads it.
 *
 * @throws LogError if it is no leaf, or has another hash
 */
function lookAt(sample: string | null, hash: Uint8Array | undefined): void {
  const bytes = Buffer.from(sample ?? '');
  readLeaf(bytes);
  if (hash === undefined || !isEqual(leafHash(bytes), hash)) throw new LogError('The leaf has another hash.');
}

/** The edge of the tree, by which it grows. */
async function edgeOfTree(tx: Transaction, tenant: string, tree: StoredTree): Promise<Edge> {
  const edge = await edgeIn(tx, tenant, tree.size).catch(nullIfDamaged);
  if (edge === null || !isEqual(edgeRoot(edge), tree.root))
    throw new LogStopped(tenant, 'its tiles do not give the root that it has.');
  return edge;
}

async function isBeginning(tx: Transaction, tenant: string, tree: StoredTree, head: TreeHead): Promise<boolean> {
  if (head.size === tree.size) return isEqual(tree.root, head.root);
  const root = await treeRoot(head.size, tilesOf(tx, tenant)).catch(nullIfDamaged);
  return root !== null && isEqual(root, head.root);
}

function isSignedBy(checkpoint: string | null, signers: readonly SignerKey[]): boolean {
  if (checkpoint === null) return false;
  const ids = (keys: readonly { name: string; id: string }[]): string =>
    keys.map(({ name, id }) => `${name}+${id}`).join();
  return ids(parseNote(checkpoint).signatures) === ids(signers);
}

/** What comes of tiles that are not there. */
function nullIfDamaged(error: unknown): null {
  if (error instanceof LogDamaged) return null;
  throw error;
}
