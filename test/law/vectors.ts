import { describe, test } from '@jest/globals';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const root = process.env['VECTORS_DIR'] ?? '';

/**
 * A block of tests over published vectors. The vectors are data of other projects and are not kept in this one. Without
 * `VECTORS_DIR` the block is one skipped test, and a warning says so: a silent pass would look like proof.
 */
export function describeVectors(name: string, block: () => void): void {
  if (root !== '') {
    describe(name, block);
    return;
  }
  console.warn(`SKIPPED: ${name}. VECTORS_DIR is not set.`);
  test.skip(`${name} (VECTORS_DIR is not set)`, () => undefined);
}

/** The names of the files in one folder of the vectors, sorted. */
export function vectorFiles(folder: string): string[] {
  return readdirSync(join(root, folder)).sort();
}

/** The bytes of one file of the vectors. */
export function vectorBytes(...path: string[]): Buffer {
  return readFileSync(join(root, ...path));
}
