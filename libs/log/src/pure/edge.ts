import { HASH_BYTES, joinSubtrees, perfectRoot, subtreesOf } from './merkle.js';
import { type HashTile, TILE_BYTES, TILE_HEIGHT, TILE_WIDTH, tileWidth, type WrittenTile } from './tile.js';

/**
 * The right edge of a tree: of each level the hashes that do not fill a tile yet, at most 255. It is all that has to be known
 * of a tree to make it grow, and it is small: a tree of 16 million leaves has three levels.
 */
export interface Edge {
  readonly size: number;
  /** From the leaves upwards; a level whose tiles are all full is an empty buffer. */
  readonly levels: readonly Buffer[];
}

export const EMPTY_EDGE: Edge = { size: 0, levels: [] };

/** The partial tiles of a tree of `size` leaves, lowest level first: what has to be read to have its edge. */
export function edgeTiles(size: number): HashTile[] {
  return levelsOf(size).flatMap((level) => {
    const index = Math.floor(size / TILE_WIDTH ** (level + 1));
    const width = tileWidth(size, level, index);
    return width === 0 ? [] : [{ level, index, width }];
  });
}

/**
 * @param tiles the bytes of the {@link edgeTiles}, in their order
 * @throws RangeError if a tile has not the bytes that its width asks for
 */
export function edgeOf(size: number, tiles: readonly Uint8Array[]): Edge {
  const wanted = edgeTiles(size);
  const levels = levelsOf(size).map((level) => {
    const at = wanted.findIndex((tile) => tile.level === level);
    const bytes = at < 0 ? Buffer.alloc(0) : Buffer.from(tiles[at] ?? []);
    if (bytes.length !== (wanted[at]?.width ?? 0) * HASH_BYTES)
      throw new RangeError(`The partial tile at level ${level} of a tree of ${size} has ${bytes.length} bytes.`);
    return bytes;
  });
  return { size, levels };
}

/**
 * The tree with more leaves: its new edge, and the tiles that are new or longer than they were. What a batch costs depends on
 * the batch and on the height, not on the size of the tree.
 */
export function grow(edge: Edge, leafHashes: readonly Uint8Array[]): { edge: Edge; tiles: WrittenTile[] } {
  const size = edge.size + leafHashes.length;
  const levels: Buffer[] = [];
  const tiles: WrittenTile[] = [];
  let added = leafHashes;
  for (const level of levelsOf(size)) {
    const before = edge.levels[level] ?? Buffer.alloc(0);
    const hashes = added.length === 0 ? before : Buffer.concat([before, ...added]);
    const split = hashes.length - (hashes.length % TILE_BYTES);
    const first = Math.floor(edge.size / TILE_WIDTH ** (level + 1));
    const isNew = added.length > 0;
    const roots: Uint8Array[] = [];
    for (let at = 0; at < split; at += TILE_BYTES) {
      const bytes = hashes.subarray(at, at + TILE_BYTES);
      tiles.push({ level, index: first + at / TILE_BYTES, width: TILE_WIDTH, bytes });
      roots.push(perfectRoot(bytes));
    }
    const rest = hashes.subarray(split);
    if (isNew && rest.length > 0)
      tiles.push({ level, index: first + split / TILE_BYTES, width: rest.length / HASH_BYTES, bytes: rest });
    levels.push(rest);
    added = roots;
  }
  return { edge: { size, levels }, tiles };
}

/** The root of the tree that has this edge. */
export function edgeRoot({ levels }: Edge): Uint8Array {
  const subtrees = levels.map((hashes) =>
    subtreesOf({ begin: 0, end: hashes.length / HASH_BYTES }).map(({ height, index }) =>
      perfectRoot(hashes.subarray((index * HASH_BYTES) << height, ((index + 1) * HASH_BYTES) << height)),
    ),
  );
  return joinSubtrees(subtrees.toReversed().flat());
}

/** The levels at which a tree of `size` leaves has tiles: 0 alone up to 255 leaves, 0 and 1 up to 65,535. */
function levelsOf(size: number): number[] {
  const levels: number[] = [];
  for (let level = 0; size >= 2 ** (TILE_HEIGHT * level); level++) levels.push(level);
  return levels;
}
