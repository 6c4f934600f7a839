import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createHash } from 'node:crypto';
import {
  consistencyProof,
  EMPTY_EDGE,
  EMPTY_ROOT,
  edgeOf,
  edgeRoot,
  edgeTiles,
  grow,
  inclusionProof,
  leafHash,
  tilePath,
  type TileReader,
  tileWidth,
  treeRoot,
  verifyConsistency,
  verifyInclusion,
} from '#log';
import { rounds } from '../support/rounds.js';

/** The definition of RFC 9162, section 2.1.1, word for word and slow; it shares nothing with the code under test. */
function definedRoot(leafHashes: readonly Buffer[]): Buffer {
  if (leafHashes.length === 0) return createHash('sha256').digest();
  const [only] = leafHashes;
  if (leafHashes.length === 1 && only !== undefined) return only;
  const k = 2 ** (Math.ceil(Math.log2(leafHashes.length)) - 1);
  const [left, right] = [definedRoot(leafHashes.slice(0, k)), definedRoot(leafHashes.slice(k))];
  return createHash('sha256').update('\x01').update(left).update(right).digest();
}

const LARGEST = 70_000;
const hashes = Array.from({ length: LARGEST }, (_, index) => leafHash(Buffer.from(`leaf ${index}`)));

/** A log as it is stored: every tile under its path, in the newest width only. */
function storeOf(size: number, batch = size): { root: Uint8Array; read: TileReader; reads: number[]; tiles: number } {
  const stored = new Map<string, Buffer>();
  const reads: number[] = [];
  let edge = EMPTY_EDGE;
  while (edge.size < size) {
    const grown = grow(edge, hashes.slice(edge.size, Math.min(edge.size + batch, size)));
    for (const tile of grown.tiles) stored.set(`${tile.level}/${tile.index}`, tile.bytes);
    edge = grown.edge;
  }
  const read: TileReader = (tiles) => {
    reads.push(tiles.length);
    return Promise.resolve(
      tiles.map(({ level, index, width }) => {
        const bytes = stored.get(`${level}/${index}`) ?? Buffer.alloc(0);
        expect(bytes.length).toBeGreaterThanOrEqual(width * 32);
        return bytes;
      }),
    );
  };
  return { root: edgeRoot(edge), read, reads, tiles: stored.size };
}

const size = fc.oneof(
  fc.integer({ min: 1, max: 600 }),
  fc.constantFrom(1, 2, 255, 256, 257, 511, 512, 513, 65_535, 65_536, 65_537, LARGEST),
  fc.integer({ min: 1, max: LARGEST }),
);
const full = storeOf(LARGEST, 777);

describe('a tree that grows', () => {
  test('has the root that the standard defines, at every size up to 600 and whatever the batches', () => {
    let edge = EMPTY_EDGE;
    expect(edgeRoot(edge)).toEqual(EMPTY_ROOT);
    for (let n = 1; n <= 600; n++) {
      edge = grow(edge, hashes.slice(n - 1, n)).edge;
      expect(edgeRoot(edge)).toEqual(definedRoot(hashes.slice(0, n)));
    }
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 1_500 }), { minLength: 1, maxLength: 8 }), (batches) => {
        let grown = EMPTY_EDGE;
        for (const batch of batches) grown = grow(grown, hashes.slice(grown.size, grown.size + batch)).edge;
        expect(edgeRoot(grown)).toEqual(definedRoot(hashes.slice(0, grown.size)));
      }),
      { seed: 6962, numRuns: rounds(100) },
    );
  });

  test('goes on from its partial tiles alone, and writes the tiles that one batch would have written', () => {
    fc.assert(
      fc.property(size, size, (a, b) => {
        const [first, second] = [Math.min(a, b), Math.max(a, b)];
        const before = grow(EMPTY_EDGE, hashes.slice(0, first));
        const stored = new Map(before.tiles.map((tile) => [tilePath(tile), tile.bytes]));
        const read = edgeTiles(first).map((tile) => stored.get(tilePath(tile)) ?? Buffer.alloc(0));
        const edge = edgeOf(first, read);
        expect(edge).toEqual(before.edge);
        const after = grow(edge, hashes.slice(first, second));
        for (const tile of after.tiles) stored.set(tilePath(tile), tile.bytes);
        const whole = grow(EMPTY_EDGE, hashes.slice(0, second));
        expect(after.edge).toEqual(whole.edge);
        for (const tile of whole.tiles) {
          expect([tilePath(tile), stored.get(tilePath(tile))?.equals(tile.bytes)]).toEqual([tilePath(tile), true]);
          expect(tile.width).toBe(tileWidth(second, tile.level, tile.index));
        }
      }),
      { seed: 9162, numRuns: rounds(100) },
    );
  });

  test('does not take a partial tile that is too short or too long for its edge', () => {
    expect(() => edgeOf(3, [Buffer.alloc(64)])).toThrow(RangeError);
    expect(() => edgeOf(3, [])).toThrow(RangeError);
    expect(() => edgeOf(256, [Buffer.alloc(64)])).toThrow(RangeError);
    expect(edgeOf(256, [Buffer.alloc(32)]).levels.map(({ length }) => length)).toEqual([0, 32]);
  });

  test('of 70,000 leaves has the tiles that the specification counts', () => {
    const widths = grow(EMPTY_EDGE, hashes).tiles.map(({ level, width }) => `${level}:${width}`);
    expect(widths.filter((tile) => tile === '0:256')).toHaveLength(273);
    expect(widths.filter((tile) => tile !== '0:256')).toEqual(['0:112', '1:256', '1:17', '2:1']);
  });

  test('reads and writes for a batch of 300 no more at 70,000 leaves than a handful of tiles', () => {
    const { edge } = grow(EMPTY_EDGE, hashes.slice(0, LARGEST - 300));
    expect(edgeTiles(edge.size)).toHaveLength(3);
    expect(grow(edge, hashes.slice(LARGEST - 300)).tiles.map(({ level }) => level)).toEqual([0, 0, 1]);
  });
});

/** One bit of one hash turned over. */
function damaged(hash: Uint8Array, bit: number): Buffer {
  const copy = Buffer.from(hash);
  const at = (bit >> 3) % copy.length;
  copy[at] = (copy[at] ?? 0) ^ (1 << (bit & 7));
  return copy;
}

const bit = fc.nat(255);
const place = fc.nat(1_000_000);

describe('a proof from tiles', () => {
  test('of inclusion verifies for any leaf of any tree, in one read; and nothing else than it does', async () => {
    await fc.assert(
      fc.asyncProperty(size, place, bit, async (n, at, b) => {
        const index = at % n;
        const { read, root } = n === LARGEST ? full : { read: full.read, root: await treeRoot(n, full.read) };
        full.reads.length = 0;
        const proof = await inclusionProof(index, n, read);
        expect(full.reads).toHaveLength(1);
        const leaf = hashes[index] ?? Buffer.alloc(0);
        const claim = { index, size: n, leafHash: leaf, hashes: proof, root };
        expect(verifyInclusion(claim)).toBe(true);

        expect(verifyInclusion({ ...claim, root: damaged(root, b) })).toBe(false);
        expect(verifyInclusion({ ...claim, leafHash: damaged(leaf, b) })).toBe(false);
        expect(verifyInclusion({ ...claim, hashes: [...proof, leaf] })).toBe(false);
        expect(verifyInclusion({ ...claim, hashes: [leaf, ...proof] })).toBe(false);
        expect(verifyInclusion({ ...claim, index: n })).toBe(false);
        expect(verifyInclusion({ ...claim, index: -1 })).toBe(false);
        expect(verifyInclusion({ ...claim, index: index + 0.5 })).toBe(false);
        for (const other of [index ^ 1, index - 1, index + 1].filter((i) => i !== index && i < n))
          expect(verifyInclusion({ ...claim, index: other })).toBe(false);
        for (const at of proof.keys()) {
          expect(verifyInclusion({ ...claim, hashes: proof.toSpliced(at, 1) })).toBe(false);
          expect(verifyInclusion({ ...claim, hashes: proof.with(at, damaged(proof[at] ?? leaf, b)) })).toBe(false);
          expect(verifyInclusion({ ...claim, hashes: proof.with(at, Buffer.alloc(31)) })).toBe(false);
        }
      }),
      { seed: 21, numRuns: rounds(400) },
    );
  });

  test('of consistency verifies for any two trees of which one begins the other; and nothing else than it does', async () => {
    await fc.assert(
      fc.asyncProperty(size, size, bit, async (a, b, turned) => {
        const [first, second] = [Math.min(a, b), Math.max(a, b)];
        const [firstRoot, secondRoot] = [await treeRoot(first, full.read), await treeRoot(second, full.read)];
        const proof = await consistencyProof(first, second, full.read);
        const claim = { first, second, firstRoot, secondRoot, hashes: proof };
        expect(verifyConsistency(claim)).toBe(true);

        expect(verifyConsistency({ ...claim, firstRoot: damaged(firstRoot, turned) })).toBe(false);
        expect(verifyConsistency({ ...claim, secondRoot: damaged(secondRoot, turned) })).toBe(false);
        expect(verifyConsistency({ ...claim, hashes: [...proof, firstRoot] })).toBe(false);
        expect(verifyConsistency({ ...claim, first: 0 })).toBe(false);
        expect(verifyConsistency({ ...claim, first: second + 1 })).toBe(false);
        if (first !== second) {
          const swapped = { ...claim, firstRoot: secondRoot, secondRoot: firstRoot };
          expect(verifyConsistency(swapped)).toBe(false);
          expect(verifyConsistency({ ...swapped, first: second, second: first })).toBe(false);
        }
        for (const [at, hash] of proof.entries()) {
          expect(verifyConsistency({ ...claim, hashes: proof.toSpliced(at, 1) })).toBe(false);
          expect(verifyConsistency({ ...claim, hashes: proof.with(at, damaged(hash, turned)) })).toBe(false);
        }
      }),
      { seed: 22, numRuns: rounds(400) },
    );
  });

  test('verifies for every pair of sizes and every leaf of trees of up to 33', async () => {
    const roots = await Promise.all(Array.from({ length: 34 }, (_, n) => treeRoot(n, full.read)));
    for (let second = 1; second <= 33; second++) {
      const secondRoot = roots[second] ?? EMPTY_ROOT;
      expect(secondRoot).toEqual(definedRoot(hashes.slice(0, second)));
      for (let first = 1; first <= second; first++) {
        const proof = await consistencyProof(first, second, full.read);
        const firstRoot = roots[first] ?? EMPTY_ROOT;
        expect(verifyConsistency({ first, second, firstRoot, secondRoot, hashes: proof })).toBe(true);
        const path = await inclusionProof(first - 1, second, full.read);
        const leaf = hashes[first - 1] ?? EMPTY_ROOT;
        const claim = { index: first - 1, size: second, leafHash: leaf, hashes: path, root: secondRoot };
        expect(verifyInclusion(claim)).toBe(true);
      }
    }
  });

  test('is refused where there is none, and where a tile has fewer hashes than it should', async () => {
    await expect(inclusionProof(5, 5, full.read)).rejects.toThrow(RangeError);
    await expect(inclusionProof(-1, 5, full.read)).rejects.toThrow(RangeError);
    await expect(consistencyProof(0, 5, full.read)).rejects.toThrow(RangeError);
    await expect(consistencyProof(6, 5, full.read)).rejects.toThrow(RangeError);
    const short: TileReader = (tiles) => Promise.resolve(tiles.map(({ width }) => Buffer.alloc(width * 32 - 32)));
    await expect(inclusionProof(0, 300, short)).rejects.toThrow('tile/0/000 is too short.');
    await expect(treeRoot(300, () => Promise.resolve([]))).rejects.toThrow(RangeError);
  });
});
