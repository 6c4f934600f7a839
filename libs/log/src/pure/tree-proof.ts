import {
  consistencyRanges,
  HASH_BYTES,
  inclusionRanges,
  joinSubtrees,
  type LeafRange,
  perfectRoot,
  type Subtree,
  subtreesOf,
} from './merkle.js';
import { type HashTile, TILE_HEIGHT, TILE_WIDTH, tilePath, tileWidth } from './tile.js';

/**
 * Gives the bytes of tiles of hashes, in the order asked for: at least as many hashes as each one's width. A tile that is
 * longer by now than the tree that is asked about will do, for tiles only ever grow.
 */
export type TileReader = (tiles: readonly HashTile[]) => Promise<readonly Uint8Array[]>;

/** The hashes that prove leaf `index` in the tree of `size` leaves, lowest first. All tiles are read at once. */
export async function inclusionProof(index: number, size: number, read: TileReader): Promise<Uint8Array[]> {
  if (!Number.isSafeInteger(index) || !Number.isSafeInteger(size) || index < 0 || index >= size)
    throw new RangeError(`A tree of ${size} has no leaf ${index}.`);
  return rangeRoots(inclusionRanges(index, size), size, read);
}

/** The hashes that prove the tree of `first` leaves to be the beginning of that of `second`. */
export async function consistencyProof(first: number, second: number, read: TileReader): Promise<Uint8Array[]> {
  if (!Number.isSafeInteger(first) || !Number.isSafeInteger(second) || first < 1 || first > second)
    throw new RangeError(`Nothing can be proved from ${first} leaves to ${second}.`);
  return rangeRoots(consistencyRanges(first, second), second, read);
}

/** The root of the tree of `size` leaves. */
export async function treeRoot(size: number, read: TileReader): Promise<Uint8Array> {
  const [root] = await rangeRoots([{ begin: 0, end: size }], size, read);
  return root ?? joinSubtrees([]);
}

async function rangeRoots(ranges: readonly LeafRange[], size: number, read: TileReader): Promise<Uint8Array[]> {
  const wanted = new Map(
    ranges.flatMap(subtreesOf).map((subtree) => {
      const tile = tileOf(subtree, size);
      return [tilePath(tile), tile];
    }),
  );
  const contents = await read([...wanted.values()]);
  const found = new Map([...wanted.keys()].map((path, at) => [path, contents[at]]));
  return ranges.map((range) =>
    joinSubtrees(
      subtreesOf(range).map((subtree) => {
        const path = tilePath(tileOf(subtree, size));
        const { begin, end } = placeInTile(subtree);
        const hashes = found.get(path)?.subarray(begin * HASH_BYTES, end * HASH_BYTES);
        if (hashes?.length !== (end - begin) * HASH_BYTES) throw new RangeError(`${path} is too short.`);
        return perfectRoot(hashes);
      }),
    ),
  );
}

/** The lowest tile in which the whole subtree is. */
function tileOf(subtree: Subtree, size: number): HashTile {
  const level = Math.floor(subtree.height / TILE_HEIGHT);
  const index = Math.floor((subtree.index * 2 ** (subtree.height % TILE_HEIGHT)) / TILE_WIDTH);
  return { level, index, width: tileWidth(size, level, index) };
}

/** Which of its tile's hashes are the lowest of the subtree. */
function placeInTile({ height, index }: Subtree): LeafRange {
  const width = 2 ** (height % TILE_HEIGHT);
  const begin = (index * width) % TILE_WIDTH;
  return { begin, end: begin + width };
}
