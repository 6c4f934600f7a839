import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { decodeEntries, edgeRoot, EMPTY_EDGE, grow, leafHash, readLeaf, TILE_WIDTH, verifyConsistency } from '#log';
import { inputs, type Reply } from '../support/index.js';
import { bytesFromHex, bytesOf, inclusion, opened } from '../support/log-client.js';
import { setStage, type Stage } from '../support/stage.js';

let stage: Stage;
let size: number;
let root: Uint8Array;
beforeAll(async () => {
  stage = await setStage({ env: { SEAL_INTERVAL_MS: '50' } });
  let last = '';
  for (let batch = 0; batch < 2; batch += 1) {
    const decisions = Array.from({ length: 200 }, (_, n) => ({ inputs: inputs({ params: { batch, n } }) }));
    const { body } = await stage.orchestrator.post('/v1/decisions/batch', { decisions });
    last = body.items.at(-1).body.ledgerEntryId;
    await inclusion(stage.auditor, last);
  }
  ({ size, root } = await opened(stage.auditor, (await stage.auditor.get('/v1/log/checkpoint')).text));
});
afterAll(() => stage?.clear());

const widths = (total: number): number[] =>
  Array.from({ length: Math.ceil(total / TILE_WIDTH) }, (_, n) => Math.min(total - n * TILE_WIDTH, TILE_WIDTH));
const path = (n: number, width: number): string =>
  `${String(n).padStart(3, '0')}${width < TILE_WIDTH ? `.p/${width}` : ''}`;

test('its bundles hold every entry once, as it is shown, and its tiles the hashes of those', async () => {
  const leaves: Buffer[] = [];
  for (const [n, width] of widths(size).entries()) {
    const bundle = decodeEntries(await bytesOf(stage.auditor, `/v1/log/tile/entries/${path(n, width)}`));
    const hashes = await bytesOf(stage.auditor, `/v1/log/tile/0/${path(n, width)}`);
    expect(Buffer.concat(bundle.map(leafHash))).toEqual(hashes);
    leaves.push(...bundle);
  }
  const { body } = await stage.auditor.get('/v1/ledger/entries?limit=500');
  const shown = new Map(body.items.map((entry: Reply['body']) => [entry.leafIndex, entry]));
  expect([leaves.length, shown.size]).toEqual([size, size]);
  for (const [index, leaf] of leaves.entries()) expect(shown.get(index)).toMatchObject({ ...readLeaf(leaf) });
});

test('its export says the place of each', async () => {
  const { text } = await stage.auditor.get('/v1/exports/decisions?format=ndjson');
  const rows: Reply['body'][] = text
    .trimEnd()
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
  const indexes = rows.map(({ leafIndex }) => leafIndex).toSorted((a, b) => a - b);
  expect(indexes).toEqual(Array.from({ length: size }, (_, n) => n));
});

test('a tile says that it may be kept for good, also when it is partial and longer by now', async () => {
  for (const tile of ['0/000', '0/000.p/7', `1/000.p/1`, 'entries/000.p/255']) {
    const { status, headers } = await stage.auditor.get(`/v1/log/tile/${tile}`);
    expect([tile, status, headers.get('content-type'), headers.get('cache-control')]).toEqual([
      tile,
      200,
      'application/octet-stream',
      'private, max-age=31536000, immutable',
    ]);
  }
  const whole = await bytesOf(stage.auditor, '/v1/log/tile/0/000');
  expect(await bytesOf(stage.auditor, '/v1/log/tile/0/000.p/7')).toEqual(whole.subarray(0, 7 * 32));
});

test.each(['0/001', '0/001.p/255', '1/000', '1/000.p/2', '2/000.p/1', '0/x001/000', 'entries/002.p/1', '63/000'])(
  'a tile beyond the tree (%s): 404',
  async (tile) => {
    const { status, body } = await stage.auditor.get(`/v1/log/tile/${tile}`);
    expect([status, body.code]).toEqual([404, 'not-found']);
  },
);

test.each(['', '0', '0/', '0/0', '0/00', '0/0000', '00/000', '64/000', '-1/000', '0/000.p', '0/000.p/', '0/000.p/0'])(
  'a path that is none of a tile (%s): 400',
  async (tile) => {
    const { status, body } = await stage.auditor.get(`/v1/log/tile/${tile}`);
    expect([status, body.code]).toEqual([400, 'validation-failed']);
  },
);
test.each(['0/000.p/256', '0/000.p/01', '0/x000/000', '0/x1/000', '0/001/000', 'data/000', 'Entries/000', '0/000/'])(
  'nor this (%s): 400',
  async (tile) => {
    const { status, body } = await stage.auditor.get(`/v1/log/tile/${tile}`);
    expect([status, body.code]).toEqual([400, 'validation-failed']);
  },
);

test('proofs/consistency: every size is the beginning of the log', async () => {
  const hashes: Buffer[] = [];
  for (const [n, width] of widths(size).entries())
    for (const leaf of decodeEntries(await bytesOf(stage.auditor, `/v1/log/tile/entries/${path(n, width)}`)))
      hashes.push(leafHash(leaf));
  for (const first of [1, 2, 3, 255, 256, 257, size - 1, size]) {
    const { body } = await stage.auditor.get(`/v1/log/proofs/consistency?first=${first}&second=${size}`);
    const proof = {
      first: body.first,
      second: body.second,
      firstRoot: edgeRoot(grow(EMPTY_EDGE, hashes.slice(0, first)).edge),
      secondRoot: root,
      hashes: body.hashes.map(bytesFromHex),
    };
    expect([first, proof.first, proof.second, verifyConsistency(proof)]).toEqual([first, first, size, true]);
    if (first === size) expect(proof.hashes).toEqual([]);
  }
});

test.each([
  ['first=0&second=1', 'first'],
  ['first=2&second=1', 'first'],
  ['first=1&second=1000000', 'second'],
  ['first=1', 'second'],
  ['second=1', 'first'],
  ['first=1&second=2&x=1', 'x'],
  ['first=01&second=2', 'first'],
  ['first=1&first=1&second=2', 'first'],
])('proofs/consistency?%s: 400, and %s is named', async (query, pointer) => {
  const { status, body } = await stage.auditor.get(`/v1/log/proofs/consistency?${query}`);
  expect([status, body.code, body.errors.map((place: { pointer: string }) => place.pointer)]).toEqual([
    400,
    'validation-failed',
    [pointer],
  ]);
});
