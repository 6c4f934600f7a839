import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readCheckpoint, tilePath, tileWidth, type Tile } from '#log';
import type { Client } from './client.js';

/** Every tile and every bundle of entries that a tree of this size has. */
export function tilesOf(size: number): Tile[] {
  const tiles: Tile[] = [];
  for (const level of ['entries', 0, 1] as const)
    for (let index = 0; tileWidth(size, level, index) > 0; index += 1)
      tiles.push({ level, index, width: tileWidth(size, level, index) });
  return tiles;
}

/** Puts a bundle together as docs/verifying.md says. What the service does not give out is not in it. */
export async function gatherBundle(auditor: Client, folder: string, actions: readonly string[]): Promise<void> {
  const download = async (path: string, file: string): Promise<Buffer | null> => {
    const response = await fetch(auditor.url + path, { headers: { authorization: `Bearer ${auditor.token}` } });
    const bytes = Buffer.from(await response.arrayBuffer());
    if (!response.ok) return null;
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), bytes);
    return bytes;
  };
  const checkpoint = await download('/v1/log/checkpoint', 'checkpoint');
  await download('/v1/log/key', 'key');
  if (checkpoint !== null)
    for (const tile of tilesOf(readCheckpoint(checkpoint.toString()).size))
      await download(`/v1/log/${tilePath(tile)}`, tilePath(tile));
  await download('/v1/exports/decisions?format=ndjson', 'decisions.ndjson');
  for (const action of actions) await download(`/v1/actions/${action}/versions`, `actions/${action}.json`);
}
