import { type Tile, tilePath } from '../pure/tile.js';

/**
 * The database lacks something of a log that it once had. What is left of it must not be taken for the whole, by whoever reads
 * it here or gets it.
 */
export class LogDamaged extends Error {
  override readonly name = 'LogDamaged';

  static of(tile: Tile, what: string): LogDamaged {
    return new LogDamaged(`${tilePath(tile)} ${what}`);
  }

  constructor(what: string) {
    super(`The log is damaged: ${what}.`);
  }
}
