import { expect, test } from '@jest/globals';
import {
  decodeEntries,
  EMPTY_EDGE,
  edgeRoot,
  grow,
  growEntries,
  leafHash,
  openCheckpoint,
  parseSignerKey,
  parseTilePath,
  parseVerifierKey,
  signCheckpoint,
  tilePath,
} from '#log';
import { describeVectors, vectorBytes, vectorFiles } from './vectors.js';

// Published with the vectors: these keys are for tests and for nothing else.
const VERIFIER_KEY = 'example.com/log/testdata+33d7b496+AeHTu4Q3hEIMHNqc6fASMsq3rKNx280NI+oO5xCFkkSx';
const SIGNER_KEY = 'PRIVATE+KEY+example.com/log/testdata+33d7b496+AeymY/SZAX0jZcJ8enZ5FY1Dz+wTML2yWSkK+9DSF3eg';

const LEAVES = 15;

describeVectors('the published small log', () => {
  const signer = parseSignerKey(SIGNER_KEY);
  const entries = decodeEntries(vectorBytes('tlog/tile/entries/000.p', String(LEAVES)));
  const published = (path: string): Buffer => vectorBytes('tlog', path);

  test('is rebuilt from its entries, one at a time: every tile, bundle and checkpoint byte for byte', () => {
    let edge = EMPTY_EDGE;
    let bundle: Uint8Array = new Uint8Array();
    const rebuilt = new Map([['checkpoint.0', signed(0, edgeRoot(edge))]]);
    for (const [index, entry] of entries.entries()) {
      const bundles = growEntries(index, bundle, [entry]);
      const grown = grow(edge, [leafHash(entry)]);
      for (const tile of [...grown.tiles, ...bundles]) rebuilt.set(tilePath(tile), tile.bytes);
      edge = grown.edge;
      bundle = bundles[0]?.bytes ?? bundle;
      rebuilt.set(`checkpoint.${edge.size}`, signed(edge.size, edgeRoot(edge)));
    }
    expect(edge.size).toBe(LEAVES);
    expect([...rebuilt.keys()].toSorted()).toEqual(
      [
        ...vectorFiles('tlog').filter((name) => /^checkpoint\.\d+$/.test(name)),
        ...vectorFiles('tlog/tile/0/000.p').map((width) => `tile/0/000.p/${width}`),
        ...vectorFiles('tlog/tile/entries/000.p').map((width) => `tile/entries/000.p/${width}`),
      ].toSorted(),
    );
    expect(rebuilt.size).toBe(16 + 15 + 15);
    for (const [path, bytes] of rebuilt) expect([path, bytes]).toEqual([path, published(path)]);
  });

  test('is rebuilt in batches of any size', () => {
    for (let batch = 1; batch <= LEAVES; batch++) {
      let edge = EMPTY_EDGE;
      let bundle: Uint8Array = new Uint8Array();
      while (edge.size < LEAVES) {
        const added = entries.slice(edge.size, edge.size + batch);
        const [written] = growEntries(edge.size, bundle, added);
        const grown = grow(edge, added.map(leafHash));
        for (const tile of [...grown.tiles, ...(written ? [written] : [])])
          expect(tile.bytes).toEqual(published(tilePath(tile)));
        edge = grown.edge;
        bundle = written?.bytes ?? bundle;
        expect(signed(edge.size, edgeRoot(edge))).toEqual(published(`checkpoint.${edge.size}`));
      }
    }
  });

  test('is signed by the published key, and its paths are read as they are written', () => {
    const key = parseVerifierKey(VERIFIER_KEY);
    const { origin, size } = openCheckpoint(published('checkpoint').toString('utf8'), [key]);
    expect([origin, size]).toEqual(['example.com/log/testdata', LEAVES]);
    for (const width of vectorFiles('tlog/tile/0/000.p'))
      expect(parseTilePath(`tile/0/000.p/${width}`)).toEqual({ level: 0, index: 0, width: Number(width) });
  });

  function signed(size: number, root: Uint8Array): Buffer {
    return Buffer.from(signCheckpoint({ origin: signer.name, size, root }, [signer]));
  }
});
