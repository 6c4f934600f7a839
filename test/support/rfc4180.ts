/** Reads CSV as RFC 4180 has it: quotes are doubled inside quotes, and every record ends in CRLF. Throws on anything else. */
export function readCsv(text: string): string[][] {
  const records: string[][] = [];
  let record: string[] = [];
  for (let at = 0; at < text.length;) {
    const [cell, end] = text[at] === '"' ? quoted(text, at) : bare(text, at);
    record.push(cell);
    if (text[end] === ',') {
      at = end + 1;
    } else if (text.startsWith('\r\n', end)) {
      records.push(record);
      record = [];
      at = end + 2;
    } else {
      throw new Error(
        `Neither a comma nor CRLF behind a cell, at ${end}: ${JSON.stringify(text.slice(end - 20, end + 20))}`,
      );
    }
  }
  if (record.length > 0) throw new Error('The last record does not end in CRLF');
  return records;
}

function bare(text: string, at: number): [cell: string, end: number] {
  const [cell = ''] = /[^",\r\n]*/y[Symbol.match](text.slice(at)) ?? [];
  return [cell, at + cell.length];
}

function quoted(text: string, at: number): [cell: string, end: number] {
  let cell = '';
  for (let from = at + 1; ;) {
    const end = text.indexOf('"', from);
    if (end < 0) throw new Error(`A quote without an end, at ${at}`);
    cell += text.slice(from, end);
    if (text[end + 1] !== '"') return [cell, end + 1];
    cell += '"';
    from = end + 2;
  }
}
