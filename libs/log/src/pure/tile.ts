import { HASH_BYTES } from './merkle.js';

/** Tiles as the C2SP specification tlog-tiles lays them out: each is a subtree of height 8, given by its lowest hashes. */

export const TILE_HEIGHT = 8;
export const TILE_WIDTH = 2 ** TILE_HEIGHT;
export const TILE_BYTES = TILE_WIDTH * HASH_BYTES;

/** Which tile: of hashes, `level` above the leaves, or of the entries themselves. */
export interface Tile {
  readonly level: number | 'entries';
  readonly index: number;
  /** 256 for a full tile, 1 to 255 for a partial one. */
  readonly width: number;
}

/** A tile of hashes: anything but a bundle of entries. */
export interface HashTile extends Tile {
  readonly level: number;
}

export interface WrittenTile extends Tile {
  readonly bytes: Buffer;
}

/** How many hashes or entries this tile has in a tree of `size` leaves: 0 to 256. */
export function tileWidth(size: number, level: number | 'entries', index: number): number {
  const reach = Math.floor(size / TILE_WIDTH ** (level === 'entries' ? 0 : level));
  return Math.min(Math.max(reach - index * TILE_WIDTH, 0), TILE_WIDTH);
}

/** Where the tile is served and kept: `tile/0/x001/x234/067.p/5`. */
export function tilePath({ level, index, width }: Tile): string {
  const groups = [String(index % 1000).padStart(3, '0')];
  for (let rest = Math.floor(index / 1000); rest > 0; rest = Math.floor(rest / 1000))
    groups.unshift(`x${String(rest % 1000).padStart(3, '0')}`);
  return `tile/${level}/${groups.join('/')}${width === TILE_WIDTH ? '' : `.p/${width}`}`;
}

const LEVEL = '(entries|[0-9]|[1-5][0-9]|6[0-3])';
const INDEX = '((?!x000)(?:x[0-9]{3}/)*[0-9]{3})';
const WIDTH = '([1-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])';
const PATH = new RegExp(`^tile/${LEVEL}/${INDEX}(?:\\.p/${WIDTH})?$`);

/**
 * The tile that a path names, or null if {@link tilePath} writes none like it. An index beyond 2^53 comes out inexact, which
 * does no harm: it is beyond every tree, and {@link tileWidth} says 0.
 */
export function parseTilePath(path: string): Tile | null {
  const [, level, index, width] = PATH.exec(path) ?? [];
  if (level === undefined || index === undefined) return null;
  return {
    level: level === 'entries' ? level : Number(level),
    index: Number(index.replaceAll(/[x/]/g, '')),
    width: width === undefined ? TILE_WIDTH : Number(width),
  };
}
