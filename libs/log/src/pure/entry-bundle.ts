import { LogError } from './log-error.js';
import { TILE_WIDTH, type WrittenTile } from './tile.js';

/** Entry bundles of tlog-tiles: entries one after the other, each after its length in two bytes, big-endian. */

export const MAX_ENTRY_BYTES = 0xffff;

/** @throws RangeError if an entry is longer than its length can say */
export function encodeEntries(entries: readonly Uint8Array[]): Buffer {
  const parts = entries.flatMap((entry) => {
    if (entry.length > MAX_ENTRY_BYTES) throw new RangeError(`An entry of ${entry.length} bytes fits no bundle.`);
    return [Buffer.from([entry.length >> 8, entry.length & 0xff]), entry];
  });
  return Buffer.concat(parts);
}

/** @throws LogError if the bytes end within an entry, or are more entries than a tile has */
export function decodeEntries(bundle: Uint8Array): Buffer[] {
  const bytes = Buffer.from(bundle.buffer, bundle.byteOffset, bundle.byteLength);
  const entries: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const begin = at + 2;
    at = begin > bytes.length ? Infinity : begin + bytes.readUInt16BE(at);
    if (at > bytes.length) throw new LogError(`The bundle ends within its entry ${entries.length}.`);
    entries.push(bytes.subarray(begin, at));
  }
  if (entries.length > TILE_WIDTH) throw new LogError(`The bundle has ${entries.length} entries.`);
  return entries;
}

/**
 * The bundles that are new or longer when entries are added to a tree of `size`.
 *
 * @param partial the partial bundle at the end, empty if there is none
 */
export function growEntries(size: number, partial: Uint8Array, entries: readonly Uint8Array[]): WrittenTile[] {
  const bundles: WrittenTile[] = [];
  for (let at = 0; at < entries.length;) {
    const begun = (size + at) % TILE_WIDTH;
    const added = entries.slice(at, at + TILE_WIDTH - begun);
    const bytes = Buffer.concat([at === 0 ? partial : new Uint8Array(), encodeEntries(added)]);
    bundles.push({ level: 'entries', index: Math.floor((size + at) / TILE_WIDTH), width: begun + added.length, bytes });
    at += added.length;
  }
  return bundles;
}
