import { createHash } from 'node:crypto';
import type { AttemptView, DecisionListRow } from '#ledger';
import type { Client, Reply } from './client.js';
import type { Filters, Records } from './reading-model.js';

/** Every page of a list from the first on, each asked with what `limit` says for its number. */
export async function walked<Row>(
  client: Client,
  path: string,
  query: Filters,
  limit: (page: number) => number = () => 500,
): Promise<Row[]> {
  const rows: Row[] = [];
  let cursor: string | null = null;
  let page = 0;
  do {
    const most = limit(page);
    const asked: Filters = { ...query, limit: String(most), ...(cursor === null ? {} : { cursor }) };
    const reply: Reply = await client.get(`${path}?${new URLSearchParams(asked)}`);
    if (reply.status !== 200) throw new Error(`${path} ${JSON.stringify(asked)}: ${reply.text}`);
    if (reply.body.items.length > most) throw new Error(`A page of ${path} is longer than its limit`);
    rows.push(...reply.body.items);
    cursor = reply.body.nextCursor;
    page += 1;
  } while (cursor !== null);
  return rows;
}

/** All that a tenant's auditor can see of decisions and attempts. */
export async function recordsOf(auditor: Client): Promise<Records> {
  return {
    decisions: await walked<DecisionListRow>(auditor, '/v1/decisions', {}),
    attempts: await walked<AttemptView>(auditor, '/v1/attempts', {}),
  };
}

export type ExportedRow = DecisionListRow & {
  readonly fingerprint: string;
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly note: string | null;
  readonly result: unknown;
  readonly leafIndex: number | null;
  readonly salts: Readonly<Record<string, string | null>> | null;
  readonly cursor: string;
};

/** Takes an NDJSON export apart and checks what its trailer says of it. */
export function readNdjson(text: string): ExportedRow[] {
  const lines = text.split('\n');
  if (lines.pop() !== '') throw new Error('The export does not end in a line feed');
  const last = `${lines.pop()}\n`;
  checkTrailer(text, last, lines.length);
  return lines.map((line) => JSON.parse(line));
}

/** Throws unless the last line is a trailer that tells the count and the SHA-256 of all bytes before it. */
export function checkTrailer(text: string, last: string, rows: number): void {
  const before = text.slice(0, text.length - last.length);
  const trailer = { rows, sha256: createHash('sha256').update(before).digest('hex'), nextCursor: null };
  if (last.replace(/^#/, '').trimEnd() !== JSON.stringify({ trailer }))
    throw new Error(`The trailer is ${last} and not ${JSON.stringify(trailer)}`);
}

export async function exported(auditor: Client, query: Filters = {}): Promise<ExportedRow[]> {
  const reply = await auditor.get(`/v1/exports/decisions?${new URLSearchParams(query)}`);
  if (reply.status !== 200) throw new Error(`${JSON.stringify(query)}: ${reply.text}`);
  return readNdjson(reply.text);
}
