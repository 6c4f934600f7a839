import type { Transaction } from '#database';
import { validationFailed } from '#problem';
import { readCursor, writeCursor, type AsOf, type Cursor } from './cursor.js';
import type { Parameters } from './parameters.js';
import type { Source } from './source.js';

export interface Paging {
  readonly order: 'asc' | 'desc';
  readonly limit: number;
  readonly cursor: string | null;
}

export interface Page<Row> {
  items: Row[];
  nextCursor: string | null;
}

/** A row with the cursor that goes on behind it. */
export interface Walked<Row> {
  readonly row: Row;
  readonly cursor: string;
}

/** What a walk goes through, and what it shows of each row that it meets. */
export interface Walk {
  /** Everything that another walk must differ in for their cursors not to fit: what is listed, the tenant, the filters. */
  readonly question: readonly unknown[];
  readonly parameters: Parameters;
  /** Where rows are found; `since`, where what has moved since the walk began is found at its old place. */
  readonly sources: readonly Source[];
  readonly since?: readonly Source[];
  /** Whether a row may move while one walks: then the walk keeps to what was there when it began. */
  readonly isOverMovingRows: boolean;
  readonly conditionOf: (source: Source) => string;
  /** The row as SQL, and the joins that it needs, from `page p` with `p.id`. */
  readonly row: string;
  readonly joins: string;
  /** What is asked of another row that each row names, looked at row by row in the order of the walk. */
  readonly sieve?: Sieve;
  /** About how many bytes a row has, as SQL, where rows may be large: then no more is read at once than is easily held. */
  readonly size?: string;
}

export interface Sieve {
  /** The column that names the other row, and what is asked of it there as `c.named`. */
  readonly column: string;
  readonly condition: string;
  /** After how many rows it stops; null: never. The page may then be too short although more would follow. */
  readonly most: number | null;
}

/** How much is read at once where rows say how large they are; the row that goes beyond it is the last. */
const MOST_BYTES = 4 * 1024 * 1024;

/** The cursor that a request brought. @throws Problem `validation-failed` for one that belongs to another question, or to none */
export function cursorOf(question: readonly unknown[], { order, cursor }: Paging): Cursor | null {
  if (cursor === null) return null;
  const read = readCursor(JSON.stringify([...question, order]), cursor);
  if (read !== null) return read;
  throw validationFailed([
    { pointer: 'cursor', detail: 'belongs to another question: send it with the filters and the order it came with' },
  ]);
}

/**
 * Reads the rows from a place on, one more than asked for if there is one more. Each row that was there when the walk began
 * is met once, whatever is written meanwhile: a row keeps the place that it had then, and what came later is left out.
 */
export async function walk<Row>(
  tx: Transaction,
  { question, parameters, sources, since = [], isOverMovingRows, conditionOf, row, joins, sieve, size = '0' }: Walk,
  { order, limit }: Paging,
  from: Cursor | null,
): Promise<Walked<Row>[]> {
  const bound = JSON.stringify([...question, order]);
  const asOf = from?.asOf ?? null;
  const [time, snapshot] =
    asOf === null ? [] : [`${parameters.add(asOf.time)}::timestamptz`, `${parameters.add(asOf.snapshot)}::pg_snapshot`];
  const [at, id] =
    from === null
      ? []
      : [`${parameters.add(from.position.at)}::timestamptz`, `${parameters.add(from.position.id)}::uuid`];
  const [isAfter, isFrom] = order === 'asc' ? ['>', '>='] : ['<', '<='];
  const inOrder = `ORDER BY 2 ${order}, 1 ${order}`;
  const found = [...sources, ...(asOf === null ? [] : since)].map((source) => {
    const rows = `SELECT ${source.id} AS id, ${source.at} AS at${sieve === undefined ? '' : `, ${sieve.column} AS named`} FROM ${source.from}
         WHERE ${source.where}${conditionOf(source)}
           ${time === undefined || snapshot === undefined ? '' : `AND ${source.asOf(snapshot, time)}`}
           ${at === undefined ? '' : `AND ${source.at} ${isFrom} ${at} AND (${source.at}, ${source.id}) ${isAfter} (${at}, ${id})`}
         ${inOrder}`;
    return sieve === undefined
      ? `(${rows} LIMIT ${limit + 1})`
      : `(SELECT c.id, c.at FROM (${rows} ${sieve.most === null ? '' : `LIMIT ${sieve.most}`}) c WHERE ${sieve.condition} ${inOrder} LIMIT ${limit + 1})`;
  });
  const rows = await tx.query<{ row: Row; at: string; id: string; time: string; snapshot: string }[]>(
    `WITH page AS MATERIALIZED (
       SELECT f.id, f.at FROM (${found.join(' UNION ALL ')}) f ORDER BY f.at ${order}, f.id ${order} LIMIT ${limit + 1})
     SELECT w.row, rfc3339(w.at) AS at, w.id, rfc3339(${time ?? 'clock_timestamp()'}) AS time, (${snapshot ?? 'pg_current_snapshot()'})::text AS snapshot
       FROM (SELECT ${row} AS row, p.at, p.id, sum(${size}) OVER (ORDER BY p.at ${order}, p.id ${order}) - ${size} AS before FROM page p ${joins}) w
      WHERE w.before < ${MOST_BYTES}
      ORDER BY w.at ${order}, w.id ${order}`,
    parameters.values,
  );
  const began: AsOf | null = isOverMovingRows ? (rows[0] ?? null) : null;
  return rows.map(({ row: shown, at: rowAt, id: rowId }) => ({
    row: shown,
    cursor: writeCursor(bound, { position: { at: rowAt, id: rowId }, asOf: began }),
  }));
}

/** A page of what was walked through: as many rows as were asked for, and where the next one begins. */
export function pageOf<Row>(walked: readonly Walked<Row>[], limit: number): Page<Row> {
  const shown = walked.slice(0, limit);
  return {
    items: shown.map(({ row }) => row),
    nextCursor: walked.length > limit ? (shown.at(-1)?.cursor ?? null) : null,
  };
}
