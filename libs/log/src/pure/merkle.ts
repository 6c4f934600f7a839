import { sha256 } from '#key';

/** The tree of RFC 6962 and RFC 9162, section 2.1, over SHA-256: hashes, and what a proof of it consists of. */

export const HASH_BYTES = 32;

/** The root of the tree without leaves. */
export const EMPTY_ROOT = sha256('');

/** Leaves `begin` to `end`, without `end`. */
export interface LeafRange {
  readonly begin: number;
  readonly end: number;
}

/** The perfect subtree over the leaves `index · 2^height` to `(index + 1) · 2^height`, without the last. */
export interface Subtree {
  readonly height: number;
  readonly index: number;
}

/** One byte tells the two kinds of hash apart, so that no leaf can be passed off as an inner node. */
const LEAF_PREFIX = Buffer.from([0]);

/** Written again for every node: a tree is mostly nodes, and a buffer for each would cost more than its hash. */
const node = Buffer.alloc(1 + 2 * HASH_BYTES, 1);

export function leafHash(leaf: Uint8Array): Buffer {
  return sha256(Buffer.concat([LEAF_PREFIX, leaf]));
}

export function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  node.set(left, 1);
  node.set(right, 1 + HASH_BYTES);
  return sha256(node);
}

/** Hashes that stand one after the other, one by one. */
export function split(hashes: Buffer): Buffer[] {
  return Array.from({ length: hashes.length / HASH_BYTES }, (_, at) =>
    hashes.subarray(at * HASH_BYTES, (at + 1) * HASH_BYTES),
  );
}

/** The root of the perfect subtree over 2^n hashes that stand one after the other. */
export function perfectRoot(hashes: Uint8Array): Uint8Array {
  if (hashes.length === HASH_BYTES) return hashes;
  const half = hashes.length / 2;
  return nodeHash(perfectRoot(hashes.subarray(0, half)), perfectRoot(hashes.subarray(half)));
}

/** The fewest perfect subtrees that together are the range, from left to right. */
export function subtreesOf({ begin, end }: LeafRange): Subtree[] {
  const subtrees: Subtree[] = [];
  for (let at = begin; at < end;) {
    let [height, width] = [0, 1];
    while (at % (2 * width) === 0 && at + 2 * width <= end) [height, width] = [height + 1, 2 * width];
    subtrees.push({ height, index: at / width });
    at += width;
  }
  return subtrees;
}

/** The root of a range from the roots of its {@link subtreesOf}; of the empty range, {@link EMPTY_ROOT}. */
export function joinSubtrees(roots: readonly Uint8Array[]): Uint8Array {
  return roots.length === 0 ? EMPTY_ROOT : roots.reduceRight((right, left) => nodeHash(left, right));
}

/**
 * The ranges whose roots prove that leaf `index` is in the tree of `size` leaves, from the leaf's sibling up to the root's
 * child: PATH of RFC 9162, section 2.1.3.1.
 */
export function inclusionRanges(index: number, size: number): LeafRange[] {
  return descend(index, size, ({ begin, end }) => end - begin === 1).siblings;
}

/**
 * The ranges whose roots prove that the tree of `first` leaves is the beginning of the tree of `second`: SUBPROOF of
 * RFC 9162, section 2.1.4.1. It goes down to the largest subtree of both that ends where the first tree ends; if that is the
 * whole first tree, whoever verifies knows its root already.
 */
export function consistencyRanges(first: number, second: number): LeafRange[] {
  const { siblings, range } = descend(first - 1, second, ({ end }) => end === first);
  return range.begin > 0 ? [range, ...siblings] : siblings;
}

/** Goes down from the root towards a leaf, and gives the siblings of the way, the lowest first. */
function descend(
  leaf: number,
  size: number,
  isThere: (range: LeafRange) => boolean,
): { siblings: LeafRange[]; range: LeafRange } {
  const siblings: LeafRange[] = [];
  let range = { begin: 0, end: size };
  while (!isThere(range)) {
    const { begin, end } = range;
    const split = splitOf(range);
    const [left, right] = [
      { begin, end: split },
      { begin: split, end },
    ];
    const isLeft = leaf < split;
    siblings.push(isLeft ? right : left);
    range = isLeft ? left : right;
  }
  return { siblings: siblings.toReversed(), range };
}

/** A tree of two or more leaves has as many on its left as the largest power of two that leaves some for the right. */
function splitOf({ begin, end }: LeafRange): number {
  let left = 1;
  while (2 * left < end - begin) left *= 2;
  return begin + left;
}

interface Inclusion {
  readonly index: number;
  readonly size: number;
  readonly leafHash: Uint8Array;
  readonly hashes: readonly Uint8Array[];
  readonly root: Uint8Array;
}

/** Whether the hashes prove that the leaf is at this index of the tree of this size and root (RFC 9162, 2.1.3.2). */
export function verifyInclusion({ index, size, leafHash, hashes, root }: Inclusion): boolean {
  if (!isCount(size) || !isCount(index) || index >= size || ![leafHash, root, ...hashes].every(isHash)) return false;
  const ranges = inclusionRanges(index, size);
  if (hashes.length !== ranges.length) return false;
  const computed = hashes.reduce(
    (hash, sibling, at) => (isLeftOf(ranges[at], index) ? nodeHash(sibling, hash) : nodeHash(hash, sibling)),
    leafHash,
  );
  return isEqual(computed, root);
}

interface Consistency {
  readonly first: number;
  readonly second: number;
  readonly firstRoot: Uint8Array;
  readonly secondRoot: Uint8Array;
  readonly hashes: readonly Uint8Array[];
}

/**
 * Whether the hashes prove that the first tree is the beginning of the second (RFC 9162, 2.1.4.2). Nothing can be proved of
 * a tree without leaves, for it is the beginning of every other: such a proof is refused.
 */
export function verifyConsistency({ first, second, firstRoot, secondRoot, hashes }: Consistency): boolean {
  if (!isCount(first) || !isCount(second) || first === 0 || first > second) return false;
  if (![firstRoot, secondRoot, ...hashes].every(isHash)) return false;
  const ranges = consistencyRanges(first, second);
  if (hashes.length !== ranges.length) return false;
  // A first tree that is a perfect subtree of the second has the root that is known; else the proof begins with it.
  const isGiven = ranges[0]?.end === first;
  const start = isGiven ? hashes[0] : firstRoot;
  if (start === undefined) return false;
  let [older, newer] = [start, start];
  for (const [at, sibling] of [...hashes.entries()].slice(isGiven ? 1 : 0)) {
    if (isLeftOf(ranges[at], first)) [older, newer] = [nodeHash(sibling, older), nodeHash(sibling, newer)];
    else newer = nodeHash(newer, sibling);
  }
  return isEqual(older, firstRoot) && isEqual(newer, secondRoot);
}

function isLeftOf(range: LeafRange | undefined, leaf: number): boolean {
  return range !== undefined && range.end <= leaf;
}

/** Beyond 2^53 a number is not exact, and no tree is that large. */
function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function isHash(bytes: Uint8Array): boolean {
  return bytes.length === HASH_BYTES;
}

export function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
