import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  decodeEntries,
  encodeEntries,
  formatReceipt,
  growEntries,
  LogError,
  parseReceipt,
  parseTilePath,
  type Tile,
  TILE_WIDTH,
  tilePath,
  tileWidth,
} from '#log';

describe('the path of a tile', () => {
  test.each<[path: string, tile: Tile]>([
    ['tile/0/000', { level: 0, index: 0, width: 256 }],
    ['tile/0/999', { level: 0, index: 999, width: 256 }],
    ['tile/0/x001/000', { level: 0, index: 1000, width: 256 }],
    ['tile/63/x001/x234/067', { level: 63, index: 1_234_067, width: 256 }],
    ['tile/1/x001/x234/067.p/1', { level: 1, index: 1_234_067, width: 1 }],
    ['tile/entries/000.p/255', { level: 'entries', index: 0, width: 255 }],
    ['tile/entries/x001/x000/000', { level: 'entries', index: 1_000_000, width: 256 }],
  ])('%s is written and read', (path, tile) => {
    expect(tilePath(tile)).toBe(path);
    expect(parseTilePath(path)).toEqual(tile);
  });

  test.each([
    ...['', 'tile', 'tile/', 'tile/0', 'tile/0/', '/tile/0/000', 'tile/0/000/', 'tile/0/000\n', '0/000', 'TILE/0/000'],
    ...['tile/00/000', 'tile/01/000', 'tile/64/000', 'tile/100/000', 'tile/-1/000', 'tile/+1/000', 'tile/x/000'],
    ...['tile/Entries/000', 'tile/data/000', 'tile/8/0/000', 'tile/0/0', 'tile/0/00', 'tile/0/0000', 'tile/0/x000'],
    ...[
      'tile/0/x000/000',
      'tile/0/x000/x001/000',
      'tile/0/001/000',
      'tile/0/x001',
      'tile/0/x001/x000',
      'tile/0/X001/000',
    ],
    ...['tile/0/x01/000', 'tile/0//000', 'tile/0/000.p', 'tile/0/000.p/', 'tile/0/000.p/0', 'tile/0/000.p/256'],
    ...['tile/0/000.p/01', 'tile/0/000.p/1/', 'tile/0/000.p/1.p/1', 'tile/0/000.P/1', 'tile/0/000p/1', 'tile/0/٠٠٠'],
    ...['tile/0/000.p/1000', 'tile/0/000.p/-1', 'tile/0/../000', 'tile/0/%30%30%30', 'tile/0/000?', 'tile/0/1e3'],
  ])('%j is none', (path) => {
    expect(parseTilePath(path)).toBeNull();
  });

  test('is read as it was written, for any tile', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.integer({ min: 0, max: 63 }), fc.constant('entries' as const)),
        fc.maxSafeInteger().map(Math.abs),
        fc.integer({ min: 1, max: 256 }),
        (level, index, width) => {
          expect(parseTilePath(tilePath({ level, index, width }))).toEqual({ level, index, width });
        },
      ),
      { seed: 8, numRuns: 1_000 },
    );
  });

  test('beyond 2^53 is beyond every tree', () => {
    const tile = parseTilePath('tile/0/x123/x456/x789/x123/x456/x789/123');
    expect(tileWidth(Number.MAX_SAFE_INTEGER, 0, tile?.index ?? 0)).toBe(0);
  });
});

describe('the width of a tile', () => {
  test.each([
    [0, 0, 0, 0],
    [1, 0, 0, 1],
    [255, 1, 0, 0],
    [256, 0, 0, 256],
    [256, 0, 1, 0],
    [256, 1, 0, 1],
    [70_000, 0, 273, 112],
    [70_000, 1, 0, 256],
    [70_000, 1, 1, 17],
    [70_000, 2, 0, 1],
    [70_000, 3, 0, 0],
    [70_000, 63, 0, 0],
  ])('in a tree of %d, at level %d, index %d: %d', (size, level, index, width) => {
    expect(tileWidth(size, level, index)).toBe(width);
    if (level === 0) expect(tileWidth(size, 'entries', index)).toBe(width);
  });
});

describe('entry bundles', () => {
  const entry = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes));

  test('give back what was put in, whatever the batches', () => {
    fc.assert(
      fc.property(fc.array(fc.array(entry, { maxLength: 400 }), { maxLength: 5 }), (batches) => {
        const stored = new Map<number, Buffer>();
        let size = 0;
        for (const batch of batches) {
          const partial = size % TILE_WIDTH === 0 ? Buffer.alloc(0) : stored.get(Math.floor(size / TILE_WIDTH));
          for (const { index, width, bytes } of growEntries(size, partial ?? Buffer.alloc(0), batch)) {
            stored.set(index, bytes);
            expect(decodeEntries(bytes)).toHaveLength(width);
          }
          size += batch.length;
        }
        expect([...stored.values()].flatMap(decodeEntries)).toEqual(batches.flat());
        for (const [index, bytes] of stored)
          expect(decodeEntries(bytes)).toHaveLength(tileWidth(size, 'entries', index));
      }),
      { seed: 16, numRuns: 60 },
    );
  });

  test('hold entries of up to 65,535 bytes', () => {
    const largest = Buffer.alloc(65_535, 7);
    expect(decodeEntries(encodeEntries([largest, Buffer.alloc(0), largest]))).toEqual([
      largest,
      Buffer.alloc(0),
      largest,
    ]);
    expect(() => encodeEntries([Buffer.alloc(65_536)])).toThrow(RangeError);
  });

  test.each([['00'], ['0001'], ['0002aa'], ['0001aa00'], ['0000'.repeat(257)]])('%.20s… is none', (hex) => {
    expect(() => decodeEntries(Buffer.from(hex, 'hex'))).toThrow(LogError);
  });
});

describe('a receipt', () => {
  const hash = Buffer.alloc(32, 0xab);
  const note = 'example.com/log\n9\nAAAA\n\n— example.com/log AAAAAAA=\n';
  const receipt = { index: 5, hashes: [hash, Buffer.alloc(32)], checkpoint: note };
  const written = formatReceipt(receipt);

  test('is written as the specification says, and read again', () => {
    expect(written).toBe(
      `c2sp.org/tlog-proof@v1\nindex 5\n${hash.toString('base64')}\n${Buffer.alloc(32).toString('base64')}\n\n${note}`,
    );
    expect(parseReceipt(written)).toEqual(receipt);
    const alone = { index: 0, hashes: [], checkpoint: note };
    expect(formatReceipt(alone)).toBe(`c2sp.org/tlog-proof@v1\nindex 0\n\n${note}`);
    expect(parseReceipt(formatReceipt(alone))).toEqual(alone);
  });

  test('may carry extra data, which count for nothing', () => {
    expect(parseReceipt(written.replace('\nindex', '\nextra AAEC\nindex'))).toEqual(receipt);
    expect(parseReceipt(written.replace('\nindex', '\nextra \nindex'))).toEqual(receipt);
  });

  test.each([
    ['nothing', ''],
    ['another header', written.replace('@v1', '@v2')],
    ['no index', written.replace('index 5\n', '')],
    ['an index with a zero before it', written.replace('index 5', 'index 05')],
    ['a negative index', written.replace('index 5', 'index -5')],
    ['an index beyond 2^53', written.replace('index 5', 'index 9007199254740993')],
    ['a space after the index', written.replace('index 5', 'index 5 ')],
    ['ends of lines with a carriage return', written.replaceAll('\n', '\r\n')],
    ['extra data that are no base64', written.replace('\nindex', '\nextra !\nindex')],
    ['extra data twice', written.replace('\nindex', '\nextra AAEC\nextra AAEC\nindex')],
    ['a hash of 31 bytes', written.replace(hash.toString('base64'), Buffer.alloc(31).toString('base64'))],
    ['a hash with a space', written.replace('q6ur', 'q6 ur')],
    ['64 hashes', formatReceipt({ ...receipt, hashes: Array.from({ length: 64 }, () => hash) })],
    ['no empty line', 'c2sp.org/tlog-proof@v1\nindex 5\n'],
  ])('with %s is none', (_name, text) => {
    expect(() => parseReceipt(text)).toThrow(LogError);
  });
});
