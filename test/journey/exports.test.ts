import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { canonicalJson } from '#key';
import { inputs } from '../support/index.js';
import { claim } from '../support/leases.js';
import { checkTrailer, exported, readNdjson, walked, type ExportedRow } from '../support/reading.js';
import { readCsv } from '../support/rfc4180.js';
import { setStage, TRANSACTIONAL, type Stage } from '../support/stage.js';

/** What a spreadsheet would calculate, run or take for the end of a cell. */
const HOSTILE = [
  '=cmd|"/c calc"!A1',
  '+1',
  '-1',
  '-2+3+cmd|x',
  '@SUM(A1)',
  '\t=1',
  '\r=1',
  '\n=1',
  "'=1",
  "'",
  "''x",
  'a,b',
  'a"b',
  '"',
  '""',
  'a\r\nb,"c"',
  'a\nb',
  'a\rb',
  'Müller & Söhne',
  '🦊👩‍👩‍👧',
  '＝1',
  '＋1',
  ' =1',
  '#{"trailer":{}}',
  '\u2028\u2029\u0085',
  ';=1;',
  '\ufeff=1',
] as const;

/** The columns of the table, in the order in which a reader may rely on them. */
const COLUMNS = [
  'decisionId',
  'key',
  'keySource',
  'contentKey',
  'state',
  'outcome.status',
  'outcome.reason',
  'action',
  'actionVersion',
]
  .concat([
    'subject.type',
    'subject.id',
    'reportingPeriod',
    'model.id',
    'model.version',
    'promptTemplateSha256',
    'retrievalSnapshotId',
  ])
  .concat([
    'policyVersion',
    'effectId',
    'externalRef',
    'ledgerEntryId',
    'receivedAt',
    'recordedAt',
    'fingerprint',
    'inputs',
    'note',
  ])
  .concat(['result', 'leafIndex', 'salts']);

/** What a spreadsheet takes for a formula, or drops before it looks for one. */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;

let stage: Stage;
beforeAll(async () => {
  stage = await setStage({
    // An entry that is sealed between two exports changes its row: here nothing is sealed.
    env: { WORKER: 'off' },
    actions: {
      'note.add': TRANSACTIONAL,
      'case.close': { ...TRANSACTIONAL, uniqueness: 'subject' },
      'call.out': { execution: 'caller', leaseSeconds: 3600 },
    },
  });
  await stage.orchestrator.post('/v1/decisions/batch', {
    decisions: HOSTILE.map((text, n) => ({
      inputs: inputs({
        subject: { type: text, id: text },
        params: { n, text },
        model: { id: text, version: text },
        retrievalSnapshotId: text,
        policyVersion: text,
      }),
      note: text,
    })),
  });
  for (const [n, text] of HOSTILE.entries()) {
    const held = await claim(
      stage.orchestrator,
      { inputs: inputs({ action: 'call.out', params: { n } }) },
      `call-${n}`,
    );
    if (n % 3 === 0) await held.complete({ status: 'applied', result: { text }, externalRef: text });
    if (n % 3 === 1) await held.complete({ status: 'refused', reason: text });
  }
  await stage.orchestrator.decide({ inputs: inputs({ action: 'case.close' }) }, '=1+1');
  await stage.orchestrator.decide({ inputs: inputs({ action: 'case.close', policyVersion: 'p' }) }, '@x');
});
afterAll(() => stage?.clear());

const raw = async (query: Readonly<Record<string, string>>): Promise<string> => {
  const reply = await stage.auditor.get(`/v1/exports/decisions?${new URLSearchParams(query)}`);
  expect(reply.status).toBe(200);
  return reply.text;
};

describe('NDJSON', () => {
  test('has the list row, and what was hashed beside it; the trailer tells the count and the SHA-256 of all bytes before it', async () => {
    const reply = await stage.auditor.get('/v1/exports/decisions');
    expect(reply.headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8');
    const rows = readNdjson(reply.text);
    const list = await walked<Record<string, unknown>>(stage.auditor, '/v1/decisions', {});
    expect(rows).toHaveLength(HOSTILE.length * 2 + 2);
    expect(rows).toEqual(
      list.map((row) => ({
        ...row,
        fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/),
        inputs: expect.objectContaining({ tenantId: 'acme' }),
        note: row['action'] === 'note.add' ? Object(row['subject']).id : null,
        result: row['effectId'] === null ? null : expect.anything(),
        leafIndex: null,
        salts: row['ledgerEntryId'] === null ? null : expect.objectContaining({ params: expect.any(String) }),
        cursor: expect.any(String),
      })),
    );
  });

  test('of nothing is a trailer of no rows', async () => {
    expect(readNdjson(await raw({ subjectId: 'nobody' }))).toEqual([]);
  });
});

describe('CSV', () => {
  const cells = (row: ExportedRow): string[] =>
    COLUMNS.map((column) => {
      if (column === 'inputs' || column === 'result' || column === 'salts') {
        if (row[column] === null) return '';
        return column === 'salts' ? JSON.stringify(row.salts) : canonicalJson(JSON.parse(JSON.stringify(row[column])));
      }
      const value: unknown = column
        .split('.')
        .reduce<unknown>((object, name) => (object === null ? null : Object(object)[name]), row);
      return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
    });

  test('read by RFC 4180 equals the NDJSON: an apostrophe before a cell is taken off, and nothing else', async () => {
    const reply = await stage.auditor.get('/v1/exports/decisions?format=csv');
    expect(reply.headers.get('content-type')).toMatch(/^text\/csv; charset=utf-8/);
    const last = reply.text.slice(reply.text.lastIndexOf('\r\n', reply.text.length - 3) + 2);
    expect(last).toMatch(/^#\{.*\}\r\n$/);
    const [head, ...records] = readCsv(reply.text.slice(0, -last.length));
    checkTrailer(reply.text, last, records.length);
    expect(head).toEqual(COLUMNS);
    const rows = await exported(stage.auditor);
    expect(records.map((record) => record.map((cell) => cell.replace(/^'/, '')))).toEqual(rows.map(cells));
  });

  test('no cell begins what a spreadsheet takes for a formula', async () => {
    const text = await raw({ format: 'csv' });
    const all = readCsv(text.slice(0, text.lastIndexOf('#'))).flat();
    expect(all.filter((cell) => FORMULA.test(cell))).toEqual([]);
    expect(all.filter((cell) => cell.startsWith("'")).length).toBeGreaterThan(50);
  });

  test('of nothing is a head and a trailer', async () => {
    const text = await raw({ subjectId: 'nobody', format: 'csv' });
    const [head = '', trailer = '', end] = text.split('\r\n');
    expect([head.split(','), end]).toEqual([COLUMNS, '']);
    checkTrailer(text, `${trailer}\r\n`, 0);
  });
});

describe.each(['ndjson', 'csv'])('a closed range as %s', (format) => {
  test.each(['asc', 'desc'])(
    'exported twice is the same bytes, whatever is recorded in between (%s)',
    async (order) => {
      const query = { format, order, recordedTo: new Date().toISOString() };
      const first = await raw(query);
      await stage.orchestrator.decide({ inputs: inputs({ subject: { type: 'late', id: `${format} ${order}` } }) });
      expect(await raw(query)).toBe(first);
    },
  );
});

test('the cursor of each row resumes the export behind it, with the same bytes; with other filters, order or tenant it is 400', async () => {
  const query = { recordedTo: new Date().toISOString() };
  const text = await raw(query);
  const lines = text.split('\n').slice(0, -2);
  for (const [n, line] of lines.entries()) {
    const { cursor } = JSON.parse(line);
    const rest = await raw({ ...query, cursor });
    readNdjson(rest);
    expect(rest.split('\n').slice(0, -2)).toEqual(lines.slice(n + 1));
  }
  const { cursor } = JSON.parse(lines[3] ?? '');
  const globex = await stage.addTenant('globex');
  for (const [auditor, other] of [
    [stage.auditor, { ...query, order: 'desc' }],
    [stage.auditor, { ...query, action: 'note.add' }],
    [stage.auditor, {}],
    [globex.auditor, query],
  ] as const) {
    const reply = await auditor.get(`/v1/exports/decisions?${new URLSearchParams({ ...other, cursor })}`);
    expect([reply.status, reply.body.errors?.[0].pointer]).toEqual([400, 'cursor']);
  }
});
