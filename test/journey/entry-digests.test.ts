import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { canonicalJson, type JsonValue } from '#key';
import { Random } from '../support/bad-case.js';
import { inputs } from '../support/index.js';
import { claim } from '../support/leases.js';
import { ODD } from '../support/odd-text.js';
import { evidence } from '../support/population.js';
import { exported, walked } from '../support/reading.js';
import { rounds } from '../support/rounds.js';
import { setStage, TRANSACTIONAL, type Stage } from '../support/stage.js';

interface Entry {
  readonly ledgerEntryId: string;
  readonly decisionId: string;
  readonly subject: { readonly id: string };
  readonly paramsDigest: string;
  readonly noteDigest: string | null;
  readonly resultDigest: string | null;
  readonly salts: Readonly<Record<'params' | 'note' | 'result', string | null>>;
}

const MEMBERS = [
  'v',
  'tenant',
  'ledgerEntryId',
  'decisionId',
  'key',
  'keySource',
  'contentKey',
  'fingerprint',
  'action',
  'actionVersion',
  'subject',
]
  .concat([
    'reportingPeriod',
    'outcome',
    'reason',
    'model',
    'promptTemplateSha256',
    'retrievalSnapshotId',
    'policyVersion',
    'effectId',
    'externalRef',
  ])
  .concat(['recordedBy', 'recordedAt', 'paramsDigest', 'noteDigest', 'resultDigest', 'leafIndex', 'salts']);

let stage: Stage;
beforeAll(async () => {
  stage = await setStage({
    actions: {
      'note.add': TRANSACTIONAL,
      'case.close': { ...TRANSACTIONAL, uniqueness: 'subject' },
      'call.out': { execution: 'caller', leaseSeconds: 3600 },
    },
  });
});
afterAll(() => stage?.clear());

/** SHA-256 over the salt and the RFC 8785 bytes of a value, made anew from what the other routes show. */
function digest(salt: string | null, value: JsonValue): string {
  const bytes = Buffer.from(salt ?? '', 'base64url');
  expect([bytes.length, bytes.toString('base64url')]).toEqual([32, salt]);
  return createHash('sha256').update(bytes).update(canonicalJson(value)).digest('hex');
}

async function expectDigests(entry: Entry): Promise<void> {
  const { body } = await stage.auditor.get(`/v1/decisions/${entry.decisionId}`);
  const { note, inputs: asked } = body.request;
  const result: JsonValue = body.effect?.result ?? null;
  expect(entry.paramsDigest).toBe(digest(entry.salts.params, asked.params));
  expect([note, entry.noteDigest]).toEqual([note, note === null ? null : digest(entry.salts.note, note)]);
  expect(entry.resultDigest).toBe(body.effect === null ? null : digest(entry.salts.result, result));
  expect([entry.salts.note === null, entry.salts.result === null]).toEqual([note === null, body.effect === null]);
}

const text = fc.oneof(
  fc.constantFrom(...ODD),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 60 }).filter((value) => !value.includes('\u0000')),
);
const json = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    text,
    fc.integer(),
    fc.constantFrom<JsonValue>(null, true, false, 0.1, 1e-7, 1e21, -0, 333333333.3333333, {}, []),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(text, tie('value'), { maxKeys: 3 }),
  ),
})).value;

test('the digests of an entry can be made again from the decision and the salts: params, notes and results of every kind', async () => {
  let n = 0;
  await fc.assert(
    fc.asyncProperty(fc.dictionary(text, json, { maxKeys: 4 }), fc.option(text), json, async (params, note, result) => {
      n += 1;
      const random = new Random(String(n));
      // A member called __proto__ is data, and a spread keeps it so.
      const asked = { ...params, [`number ${n}`]: n };
      const held = await claim(
        stage.orchestrator,
        {
          inputs: inputs({ action: 'call.out', params: asked }),
          ...(note === null ? {} : { note }),
          ...evidence(random),
        },
        `digest-${n}`,
      );
      const completed = await held.complete({ status: 'applied', result: { result } });
      expect([completed.status, completed.text]).toEqual([200, expect.any(String)]);
      const { body } = await stage.auditor.get(`/v1/ledger/entries/${completed.body.ledgerEntryId}`);
      await expectDigests(body);
    }),
    { numRuns: rounds(600), seed: 20261130 },
  );
});

test('and so of what is declarative, refused by a rule, and refused by its caller', async () => {
  for (const [index, note] of [undefined, ...ODD].entries()) {
    const extra = note === undefined ? {} : { note };
    const subject = { type: 'case', id: `d-${index}` };
    await stage.orchestrator.decide({ inputs: inputs({ subject }), ...extra });
    await stage.orchestrator.decide({ inputs: inputs({ action: 'case.close', subject }), ...extra });
    await stage.orchestrator.decide({
      inputs: inputs({ action: 'case.close', subject, policyVersion: 'p' }),
      ...extra,
    });
    const held = await claim(
      stage.orchestrator,
      { inputs: inputs({ action: 'call.out', subject }), ...extra },
      `refused-${index}`,
    );
    await held.complete({ status: 'refused', reason: note ?? 'limit' });
  }
  const entries = await walked<Entry>(stage.auditor, '/v1/ledger/entries', { subjectType: 'case' });
  const ours = entries.filter(({ subject }) => subject.id.startsWith('d-'));
  expect(ours).toHaveLength(4 * (ODD.length + 1));
  for (const entry of ours) await expectDigests(entry);
});

test('an entry has the members of its leaf and no other, alone as in the list, and the salts are those of the export', async () => {
  const entries = await walked<Entry>(stage.auditor, '/v1/ledger/entries', {});
  const rows = new Map((await exported(stage.auditor)).map((row) => [row.ledgerEntryId, row]));
  for (const entry of entries.slice(0, 40)) {
    expect(Object.keys(entry).toSorted()).toEqual(MEMBERS.toSorted());
    expect((await stage.auditor.get(`/v1/ledger/entries/${entry.ledgerEntryId}`)).body).toEqual(entry);
  }
  expect(rows.size).toBe(entries.length);
  for (const entry of entries) expect(rows.get(entry.ledgerEntryId)?.salts).toEqual(entry.salts);
});

test('no salt is used twice, neither by another entry nor by the same', async () => {
  const entries = await walked<Entry>(stage.auditor, '/v1/ledger/entries', {});
  const salts = entries.flatMap((entry) => Object.values(entry.salts)).filter((salt) => salt !== null);
  expect(new Set(salts).size).toBe(salts.length);
  const [hidden] = await stage.database.query<{ all: number; different: number }>(
    `SELECT count(*)::integer AS all, count(DISTINCT salt)::integer AS different
       FROM ledger_entry CROSS JOIN LATERAL unnest(ARRAY[params_salt, note_salt, result_salt]) salt`,
  );
  expect(hidden?.different).toBe(hidden?.all);
});
