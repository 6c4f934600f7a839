import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  EMPTY_EDGE,
  edgeRoot,
  grow,
  growEntries,
  leafHash,
  parsePrivateKey,
  type SignerKey,
  signCheckpoint,
  signerKey,
  tilePath,
  TILE_WIDTH,
  type TileReader,
} from '#log';

export const ORIGIN = 'log.example/acme';

/** The same key at every run for the same number. */
export const testSigner = (number: number, name = ORIGIN): SignerKey =>
  signerKey(name, parsePrivateKey(Buffer.alloc(32, number).toString('base64')));

/** A log in memory, sealed batch by batch as a sealer would: what is at each path, and the checkpoints it signed. */
export class TestLog {
  readonly files = new Map<string, Buffer>();
  readonly entries: Buffer[] = [];
  private edge = EMPTY_EDGE;
  private bundle: Uint8Array = new Uint8Array();

  constructor(readonly signers: readonly SignerKey[] = [testSigner(1)]) {}

  get size(): number {
    return this.edge.size;
  }

  get root(): Uint8Array {
    return edgeRoot(this.edge);
  }

  seal(entries: readonly Buffer[]): this {
    const bundles = growEntries(this.size, this.bundle, entries);
    const { edge, tiles } = grow(this.edge, entries.map(leafHash));
    for (const tile of [...bundles, ...tiles]) this.files.set(tilePath(tile), tile.bytes);
    this.bundle = edge.size % TILE_WIDTH === 0 ? new Uint8Array() : (bundles.at(-1)?.bytes ?? this.bundle);
    this.edge = edge;
    this.entries.push(...entries);
    return this;
  }

  checkpoint(origin = ORIGIN): string {
    return signCheckpoint({ origin, size: this.size, root: this.root }, this.signers);
  }

  readonly read: TileReader = (tiles) =>
    Promise.resolve(tiles.map((tile) => this.files.get(tilePath(tile)) ?? Buffer.alloc(0)));

  /** As files below a folder, each at its path. */
  writeTo(folder: string): void {
    for (const [path, bytes] of this.files) {
      const file = join(folder, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, bytes);
    }
  }
}
