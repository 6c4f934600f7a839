import { join } from 'node:path';
import { decodeEntries } from '../pure/entry-bundle.js';
import { LogError } from '../pure/log-error.js';
import { HASH_BYTES, leafHash, split } from '../pure/merkle.js';
import { TILE_WIDTH, tilePath, tileWidth } from '../pure/tile.js';
import { readIfThere } from './files.js';

/** Rows come nearly in the order of the log, so that a few bundles near one another answer for most. */
const BUNDLES_AT_HAND = 64;

/** The entries of a bundle, each at its place; null at the place of one that is missing. */
export type Entries = readonly (Buffer | null)[];

/** Tiles and entry bundles as files, at the paths at which the log serves them. */
export class LogFolder {
  private readonly atHand = new Map<number, Promise<Entries | null>>();

  constructor(
    private readonly folder: string,
    readonly size: number,
  ) {}

  /** The hashes of a tile as this tree has it, or null if the file is not there. */
  async hashes(level: number, index: number): Promise<Buffer[] | null> {
    const bytes = await this.read(level, index);
    const wanted = tileWidth(this.size, level, index) * HASH_BYTES;
    if (bytes !== null && bytes.length < wanted)
      throw new LogError(`${this.pathOf(level, index)} has ${bytes.length} bytes, not ${wanted}.`);
    return bytes === null ? null : split(bytes.subarray(0, wanted));
  }

  /** The entries of a bundle as this tree has it, or null if the file is not there. */
  async entries(index: number): Promise<Entries | null> {
    const known = this.atHand.get(index);
    if (known !== undefined) return known;
    const [oldest] = this.atHand.keys();
    if (oldest !== undefined && this.atHand.size >= BUNDLES_AT_HAND) this.atHand.delete(oldest);
    const entries = this.readEntries(index);
    this.atHand.set(index, entries);
    return entries;
  }

  pathOf(level: number | 'entries', index: number): string {
    return tilePath({ level, index, width: tileWidth(this.size, level, index) });
  }

  private async readEntries(index: number): Promise<Entries | null> {
    const bytes = await this.read('entries', index);
    if (bytes === null) return null;
    const wanted = tileWidth(this.size, 'entries', index);
    const entries = decodeEntries(bytes).slice(0, wanted);
    if (entries.length === wanted) return entries;
    const hashes = await this.hashes(0, index);
    if (hashes === null)
      throw new LogError(`${this.pathOf('entries', index)} has ${entries.length} entries, not ${wanted}.`);
    return placed(entries, hashes);
  }

  /** A partial tile may have gone when the full one came, which begins with it. */
  private async read(level: number | 'entries', index: number): Promise<Buffer | null> {
    const exact = await readIfThere(join(this.folder, this.pathOf(level, index)));
    return exact ?? readIfThere(join(this.folder, tilePath({ level, index, width: TILE_WIDTH })));
  }
}

/** Where entries are missing, the hashes tell which: each of the others is put where its own hash is. */
function placed(entries: readonly Buffer[], hashes: readonly Buffer[]): Entries {
  const hex = (hash: Uint8Array): string => Buffer.from(hash).toString('hex');
  const byHash = new Map(entries.map((entry) => [hex(leafHash(entry)), entry]));
  return hashes.map((hash) => byHash.get(hex(hash)) ?? null);
}
