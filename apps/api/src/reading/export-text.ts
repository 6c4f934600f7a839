import { createHash } from 'node:crypto';
import { stringify } from 'csv-stringify/sync';
import type { ExportRow } from '#ledger';

export const FORMATS = {
  ndjson: { type: 'application/x-ndjson; charset=utf-8', extension: 'ndjson' },
  csv: { type: 'text/csv; charset=utf-8; header=present', extension: 'csv' },
} as const;

/** How many characters are gathered before they are handed on: a chunk for each row would cost more than the row. */
const CHUNK = 64 * 1024;

interface Format {
  readonly head: string;
  readonly row: (row: ExportRow) => string;
  readonly trailer: (json: string) => string;
}

/** One object a line. The inputs and the result stand there as the very text that was hashed. */
const NDJSON: Format = {
  head: '',
  row: ({ shown, inputs, result, cursor }) =>
    `${JSON.stringify(shown).slice(0, -1)},"inputs":${inputs},"result":${result ?? 'null'},"cursor":${JSON.stringify(cursor)}}\n`,
  trailer: (json) => `${json}\n`,
};

/** The columns of the table, in their order, each with what it holds of a row. */
const COLUMNS: Readonly<Record<string, (row: ExportRow) => string | number | null | undefined>> = {
  decisionId: ({ shown }) => shown.decisionId,
  key: ({ shown }) => shown.key,
  keySource: ({ shown }) => shown.keySource,
  contentKey: ({ shown }) => shown.contentKey,
  state: ({ shown }) => shown.state,
  'outcome.status': ({ shown }) => shown.outcome?.status,
  'outcome.reason': ({ shown }) => shown.outcome?.reason,
  action: ({ shown }) => shown.action,
  actionVersion: ({ shown }) => shown.actionVersion,
  'subject.type': ({ shown }) => shown.subject.type,
  'subject.id': ({ shown }) => shown.subject.id,
  reportingPeriod: ({ shown }) => shown.reportingPeriod,
  'model.id': ({ shown }) => shown.model.id,
  'model.version': ({ shown }) => shown.model.version,
  promptTemplateSha256: ({ shown }) => shown.promptTemplateSha256,
  retrievalSnapshotId: ({ shown }) => shown.retrievalSnapshotId,
  policyVersion: ({ shown }) => shown.policyVersion,
  effectId: ({ shown }) => shown.effectId,
  externalRef: ({ shown }) => shown.externalRef,
  ledgerEntryId: ({ shown }) => shown.ledgerEntryId,
  receivedAt: ({ shown }) => shown.receivedAt,
  recordedAt: ({ shown }) => shown.recordedAt,
  fingerprint: ({ shown }) => shown.fingerprint,
  inputs: ({ inputs }) => inputs,
  note: ({ shown }) => shown.note,
  result: ({ result }) => result,
  leafIndex: ({ shown }) => shown.leafIndex,
  salts: ({ shown }) => (shown.salts === null ? null : JSON.stringify(shown.salts)),
};

/** What a spreadsheet takes for the beginning of a formula, or drops before it looks for one; and the apostrophe itself. */
const WANTS_APOSTROPHE = /^['=+\-@\t\r\n＝＋－＠]/;

/**
 * RFC 4180, and no cell that a spreadsheet would take for a formula: those begin with an apostrophe. So do those that began
 * with one already: whoever takes one apostrophe off gets back what was there.
 */
const csvLine = (cells: readonly (string | number)[]): string =>
  stringify([cells.map((cell) => (WANTS_APOSTROPHE.test(String(cell)) ? `'${cell}` : cell))], {
    record_delimiter: '\r\n',
    // A single CR or LF breaks a line as well.
    quoted_match: /[\r\n]/,
  });

const CSV: Format = {
  head: csvLine(Object.keys(COLUMNS)),
  row: (row) => csvLine(Object.values(COLUMNS).map((cell) => cell(row) ?? '')),
  trailer: (json) => `#${json}\r\n`,
};

/**
 * The text of an export: the rows, and a last line that says how many there were and the SHA-256 of every byte before it. A
 * file without it was broken off.
 */
export async function* exportText(
  format: keyof typeof FORMATS,
  rows: AsyncIterable<ExportRow>,
): AsyncGenerator<string> {
  const { head, row: lineOf, trailer } = format === 'csv' ? CSV : NDJSON;
  const hash = createHash('sha256').update(head);
  let gathered = head;
  let count = 0;
  for await (const row of rows) {
    const line = lineOf(row);
    hash.update(line);
    gathered += line;
    count += 1;
    if (gathered.length < CHUNK) continue;
    yield gathered;
    gathered = '';
  }
  const last = { trailer: { rows: count, sha256: hash.digest('hex'), nextCursor: null } };
  yield gathered + trailer(JSON.stringify(last));
}
