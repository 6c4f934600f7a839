import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { decodeEntries, type Leaf, leafBytes, readLeaf, TILE_WIDTH } from '#log';
import { inputs } from '../support/index.js';
import { claim } from '../support/leases.js';
import { bytesOf, inclusion } from '../support/log-client.js';
import { ODD } from '../support/odd-text.js';
import { walked } from '../support/reading.js';
import { setStage, TRANSACTIONAL, type Stage } from '../support/stage.js';

type Entry = Leaf & { readonly leafIndex: number; readonly salts: unknown };

let stage: Stage;
beforeAll(async () => {
  stage = await setStage({
    env: { SEAL_INTERVAL_MS: '50' },
    actions: { 'note.add': TRANSACTIONAL, 'call.out': { execution: 'caller', leaseSeconds: 3600 } },
  });
});
afterAll(() => stage?.clear());

const TEXTS = [
  ...ODD,
  ...fc.sample(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }).filter((value) => !value.includes('\u0000')),
    { numRuns: 30, seed: 20261201 },
  ),
];

/** A decision of which every member that is text of the caller's is that text. */
const odd = (text: string, action: string): Record<string, unknown> => ({
  inputs: inputs({
    action,
    subject: { type: text, id: text },
    params: { [text]: [text] },
    model: { id: text, version: text },
    retrievalSnapshotId: text,
    policyVersion: text,
  }),
  note: text,
});

test('a leaf has the bytes that its members have anywhere else, whatever text is in them', async () => {
  let last = '';
  for (const [n, text] of TEXTS.entries()) {
    await stage.orchestrator.decide(odd(text, 'note.add'));
    const applied = await claim(stage.orchestrator, odd(text, 'call.out'), `"\\"\\\\ ~${n}"`);
    await applied.complete({ status: 'applied', result: { [text]: text }, externalRef: text });
    const refused = await claim(stage.orchestrator, odd(`${text}.`, 'call.out'), `refused-${n}`);
    const { body } = await refused.complete({ status: 'refused', reason: text });
    last = body.ledgerEntryId;
  }
  expect((await inclusion(stage.auditor, last)).status).toBe(200);

  const entries = await walked<Entry>(stage.auditor, '/v1/ledger/entries', {});
  expect(entries).toHaveLength(3 * TEXTS.length);
  expect(entries.length).toBeLessThan(TILE_WIDTH);
  const leaves = decodeEntries(await bytesOf(stage.auditor, `/v1/log/tile/entries/000.p/${entries.length}`));
  for (const { leafIndex, salts: _, ...members } of entries) {
    const { v: _version, ...leaf } = members as Leaf & { v: number };
    expect(leaves[leafIndex]?.toString('utf8')).toBe(leafBytes(leaf).toString('utf8'));
    expect(readLeaf(leaves[leafIndex] ?? Buffer.alloc(0))).toEqual(leaf);
  }
});
