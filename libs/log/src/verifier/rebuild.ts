import { EMPTY_EDGE, type Edge, edgeRoot, grow } from '../pure/edge.js';
import { type Leaf, readLeaf } from '../pure/leaf.js';
import { LogError } from '../pure/log-error.js';
import { leafHash, split } from '../pure/merkle.js';
import { TILE_WIDTH, tileWidth, type WrittenTile } from '../pure/tile.js';
import type { ActionRules } from './action-rules.js';
import { Check } from './check.js';
import { FirstSeen } from './first-seen.js';
import type { LogFolder } from './log-folder.js';

/** Where a long run is. */
export type Progress = (done: number, whole: number, what: string) => void;

export type RebuildChecks = ReturnType<typeof rebuildChecks>;

export const rebuildChecks = () => ({
  /** Every entry can be read and is a leaf of this log. */
  entries: new Check('entries', 'entries'),
  /** Every hash in the tiles is the one that the entries give. */
  tiles: new Check('tiles', 'hashes'),
  /** No key is there twice. */
  keys: new Check('keys', 'keys, each once'),
  /** No place of a subject (and period) is taken twice by entries whose action says "once". */
  places: new Check('places', 'applied entries, once where the action says so'),
});

export const entryName = (index: number, leaf: Leaf | null): string =>
  `entry ${index}${leaf === null ? '' : ` (${leaf.ledgerEntryId})`}`;

/**
 * Builds the tree again from its entries, and meanwhile looks at each entry and each tile. Where a bundle of entries is not
 * there, the tree goes on from the hashes in the tile, so that one gap does not hide the rest.
 */
export class Rebuild {
  private edge = EMPTY_EDGE;
  private isWhole = true;
  private readonly keys = new FirstSeen();
  private readonly places = new FirstSeen();
  private readonly roots = new Map<number, Uint8Array>();

  /** @param sizes those at which the root is wanted afterwards */
  constructor(
    private readonly log: LogFolder,
    private readonly origin: string,
    private readonly rules: ActionRules,
    private readonly sizes: readonly number[],
    private readonly checks: RebuildChecks,
  ) {}

  async run(progress: Progress): Promise<void> {
    this.keepRoots([]);
    for (let index = 0; index * TILE_WIDTH < this.log.size; index++) {
      const hashes = await this.readEntries(index);
      if (hashes === null) this.isWhole = false;
      else if (this.isWhole) await this.growBy(hashes);
      progress(Math.min((index + 1) * TILE_WIDTH, this.log.size), this.log.size, 'entries');
    }
  }

  /** The root of the tree at one of the sizes that were wanted, or null if entries before it could not be read. */
  rootAt(size: number): Uint8Array | null {
    return this.roots.get(size) ?? null;
  }

  /** Gives the hashes of the leaves of one bundle, or null if neither the entries nor their hashes are there. */
  private async readEntries(index: number): Promise<Uint8Array[] | null> {
    const first = index * TILE_WIDTH;
    const { entries: check } = this.checks;
    const path = this.log.pathOf('entries', index);
    const entries = await this.orNull(check, this.log.entries(index), path);
    const kept = await this.orNull(this.checks.tiles, this.log.hashes(0, index), this.log.pathOf(0, index));
    if (entries === null) return kept;
    const hashes: Uint8Array[] = [];
    for (const [at, entry] of entries.entries()) {
      if (entry === null) {
        check.failed(`${entryName(first + at, null)} is missing in ${path}`);
        continue;
      }
      const hash = leafHash(entry);
      hashes.push(hash);
      const leaf = this.readEntry(entry, first + at);
      if (kept !== null)
        this.checks.tiles.ruledBy(
          kept[at]?.equals(hash)
            ? []
            : [`${entryName(first + at, leaf)} has not the hash in ${this.log.pathOf(0, index)}`],
        );
      if (leaf !== null) this.lookForOthers(leaf, first + at);
    }
    return hashes.length === entries.length ? hashes : kept;
  }

  private readEntry(entry: Buffer, index: number): Leaf | null {
    try {
      const leaf = readLeaf(entry);
      const isOwn = this.origin.endsWith(`/${leaf.tenant}`);
      this.checks.entries.ruledBy(
        isOwn ? [] : [`${entryName(index, leaf)} is of the tenant ${leaf.tenant}, the log of ${this.origin}`],
      );
      return leaf;
    } catch (error) {
      if (!(error instanceof LogError)) throw error;
      this.checks.entries.failed(`${entryName(index, null)}: ${error.message}`);
      return null;
    }
  }

  private lookForOthers(leaf: Leaf, index: number): void {
    const key = this.keys.add(leaf.key, index);
    this.checks.keys.ruledBy(key === null ? [] : [`${entryName(index, leaf)} has the key of entry ${key}`]);
    if (leaf.outcome !== 'applied') return;
    const place = this.rules.placeOf(leaf);
    if (place === undefined) {
      this.checks.places.notChecked(`the rules of ${leaf.action}, version ${leaf.actionVersion}, are not there`);
      return;
    }
    const holder = place === null ? null : this.places.add(place, index);
    this.checks.places.ruledBy(
      holder === null ? [] : [`${entryName(index, leaf)} was applied to what entry ${holder} had been applied to`],
    );
  }

  private async growBy(hashes: readonly Uint8Array[]): Promise<void> {
    this.keepRoots(hashes);
    const { edge, tiles } = grow(this.edge, hashes);
    this.edge = edge;
    // The lowest tiles were compared entry by entry; of the higher ones only the last state is kept anywhere.
    for (const tile of tiles)
      if (tile.level !== 0 && tile.width === tileWidth(this.log.size, tile.level, tile.index)) await this.compare(tile);
  }

  private async compare({ level, index, bytes }: WrittenTile): Promise<void> {
    if (level === 'entries') return;
    const path = this.log.pathOf(level, index);
    const kept = await this.orNull(this.checks.tiles, this.log.hashes(level, index), path);
    if (kept === null) return;
    const rebuilt = split(bytes);
    for (const [at, hash] of kept.entries()) {
      const span = TILE_WIDTH ** level;
      const first = (index * TILE_WIDTH + at) * span;
      const isSame = rebuilt[at]?.equals(hash) ?? false;
      this.checks.tiles.ruledBy(
        isSame ? [] : [`${path} has another hash for the entries ${first} to ${first + span - 1}`],
      );
    }
  }

  private keepRoots(added: readonly Uint8Array[]): void {
    const { size } = this.edge;
    for (const wanted of this.sizes)
      if (wanted >= size && wanted <= size + added.length) this.roots.set(wanted, rootOf(this.edge, added, wanted));
  }

  /** What is not there is not checked; what cannot be what it should is wrong. */
  private async orNull<T>(check: Check, reading: Promise<T | null>, path: string): Promise<T | null> {
    try {
      const found = await reading;
      if (found === null) check.notChecked(`${path} is not there`);
      return found;
    } catch (error) {
      if (!(error instanceof LogError)) throw error;
      check.failed(`${path}: ${error.message}`);
      return null;
    }
  }
}

function rootOf(edge: Edge, added: readonly Uint8Array[], size: number): Uint8Array {
  return edgeRoot(grow(edge, added.slice(0, size - edge.size)).edge);
}
