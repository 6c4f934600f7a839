import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { canonicalJson, deriveContentKey, fingerprint, type JsonObject, type JsonValue } from '#key';
import { formatVerifierKey, type Leaf, leafBytes, payloadDigest } from '#log';
import { TestLog, testSigner } from './log.js';

/** What the service would say of one decision: its ledger entry and its row of an export. */
export interface Recorded {
  readonly leaf: Leaf;
  readonly row: JsonObject;
}

const uuid = (kind: number, index: number): string =>
  `0199d3a1-7c00-7000-8${String(kind).padStart(3, '0')}-${String(index).padStart(12, '0')}`;
const saltOf = (index: number, what: string): Buffer => createHash('sha256').update(`${what} ${index}`).digest();

/** A decision that has been recorded and sealed at an index; every fifth is refused, every third carries a note. */
export function recorded(index: number, subjectId = `C-${index}`): Recorded {
  const isApplied = index % 5 !== 4;
  const inputs = {
    tenantId: 'acme',
    subject: { type: 'case', id: subjectId },
    action: index % 2 === 0 ? 'refund.create' : 'report.file',
    params: { amount: `${index}.00`, reportingPeriod: '2026-Q4' },
    model: { id: 'm-1', version: '2026-09-01' },
    promptTemplateSha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    retrievalSnapshotId: `rs-${index}`,
    policyVersion: 'pol-7',
  };
  const note = index % 3 === 0 ? `note ${index}` : null;
  const result: JsonValue = isApplied ? { done: index } : null;
  const { canonical, key: contentKey } = deriveContentKey(inputs);
  const isClient = index % 4 === 1;
  const form = (value: JsonValue): string | null => (value === null ? null : canonicalJson(value));
  const leaf: Leaf = {
    tenant: inputs.tenantId,
    ledgerEntryId: uuid(1, index),
    decisionId: uuid(2, index),
    key: isClient ? `client ${index}` : contentKey,
    keySource: isClient ? 'client' : 'content',
    contentKey,
    fingerprint: fingerprint(canonical, note).toString('hex'),
    action: inputs.action,
    actionVersion: 1,
    subject: inputs.subject,
    reportingPeriod: '2026-Q4',
    outcome: isApplied ? 'applied' : 'refused',
    reason: isApplied ? null : 'too-late',
    model: inputs.model,
    promptTemplateSha256: inputs.promptTemplateSha256,
    retrievalSnapshotId: inputs.retrievalSnapshotId,
    policyVersion: inputs.policyVersion,
    effectId: isApplied ? uuid(3, index) : null,
    externalRef: index % 7 === 0 ? `pay-${index}` : null,
    recordedBy: 'c0ffee',
    recordedAt: `2026-11-30T17:36:00.${String(index).padStart(6, '0')}Z`,
    paramsDigest: payloadDigest(saltOf(index, 'params'), canonicalJson(inputs.params)),
    noteDigest: payloadDigest(saltOf(index, 'note'), form(note)),
    resultDigest: payloadDigest(saltOf(index, 'result'), form(result)),
  };
  const salt = (what: string, value: JsonValue): string | null =>
    value === null ? null : saltOf(index, what).toString('base64url');
  const { tenant: _t, recordedBy: _r, paramsDigest: _p, noteDigest: _n, resultDigest: _d, reason, ...shared } = leaf;
  const row: JsonObject = {
    ...shared,
    subject: { ...leaf.subject },
    model: { ...leaf.model },
    state: 'completed',
    outcome: reason === null ? { status: leaf.outcome } : { status: leaf.outcome, reason },
    receivedAt: leaf.recordedAt,
    ...{ inputs, note, result, leafIndex: index },
    salts: { params: salt('params', inputs.params), note: salt('note', note), result: salt('result', result) },
    cursor: `c${index}`,
  };
  return { leaf, row };
}

/** A folder as an auditor gathers it. What a test tampers with it changes before {@link write}. */
export class TestBundle {
  readonly log = new TestLog();
  rows: JsonObject[] = [];
  actions: JsonObject[] = [
    { items: [{ action: 'refund.create', version: 1, uniqueness: 'subject' }] },
    { items: [{ action: 'report.file', version: 1, uniqueness: 'subject-and-period' }] },
  ];

  constructor(decisions: readonly Recorded[]) {
    for (let at = 0; at < decisions.length; at += 100)
      this.log.seal(decisions.slice(at, at + 100).map(({ leaf }) => leafBytes(leaf)));
    this.rows = decisions.map(({ row }) => structuredClone(row));
  }

  static of(size: number): TestBundle {
    return new TestBundle(Array.from({ length: size }, (_, index) => recorded(index)));
  }

  row(index: number): JsonObject {
    return this.rows[index] ?? {};
  }

  write(folder: string): string {
    this.log.writeTo(folder);
    mkdirSync(join(folder, 'actions'), { recursive: true });
    for (const [at, answer] of this.actions.entries())
      writeFileSync(join(folder, `actions/${at}.json`), JSON.stringify(answer));
    writeFileSync(join(folder, 'checkpoint'), this.log.checkpoint());
    writeFileSync(join(folder, 'key'), `${formatVerifierKey(testSigner(1))}\n`);
    writeFileSync(join(folder, 'decisions.ndjson'), exportOf(this.rows));
    return folder;
  }
}

export function exportOf(rows: readonly JsonObject[]): string {
  const lines = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
  const sha256 = createHash('sha256').update(lines).digest('hex');
  return `${lines}${JSON.stringify({ trailer: { rows: rows.length, sha256, nextCursor: null } })}\n`;
}
