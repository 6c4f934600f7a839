import { createHash } from 'node:crypto';

/** The place of a row in the order: its time, as the database spells it, and its id. */
export interface Position {
  readonly at: string;
  readonly id: string;
}

/** What was there when a walk began: the time on the database's clock, and the snapshot of its first page. */
export interface AsOf {
  readonly time: string;
  readonly snapshot: string;
}

export interface Cursor {
  readonly position: Position;
  /** Null in a walk over what is never moved, such as a closed range of recorded decisions. */
  readonly asOf: AsOf | null;
}

const FORM = /^([^~]+)~([^~]+)(?:~([^~]+)~([^~]+))?~([0-9a-f]{32})$/;

/**
 * Writes an opaque cursor. It is bound to the question (tenant, filters, order), so that it cannot be used for another. It
 * is a checksum and no secret: a cursor opens nothing that its credential does not open.
 */
export function writeCursor(question: string, { position, asOf }: Cursor): string {
  const parts = [position.at, position.id, ...(asOf === null ? [] : [asOf.time, asOf.snapshot])];
  const text = parts.join('~');
  return Buffer.from(`${text}~${checksum(question, text)}`).toString('base64url');
}

/** Reads a cursor; null if it is none, or belongs to another question. */
export function readCursor(question: string, cursor: string): Cursor | null {
  const [whole, at, id, time, snapshot, check] = FORM.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? [];
  if (
    whole === undefined ||
    at === undefined ||
    id === undefined ||
    Buffer.from(whole).toString('base64url') !== cursor
  )
    return null;
  if (check !== checksum(question, whole.slice(0, -33)) || !isTime(at) || !UUID.test(id)) return null;
  if (time === undefined || snapshot === undefined) return { position: { at, id }, asOf: null };
  return isTime(time) && isSnapshot(snapshot) ? { position: { at, id }, asOf: { time, snapshot } } : null;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const SNAPSHOT = /^(\d{1,18}):(\d{1,18}):((?:\d{1,18},)*\d{1,18})?$/;

/** Whether a time exists. */
function isTime(text: string): boolean {
  const toTheMillisecond = text.slice(0, 23);
  const time = new Date(`${toTheMillisecond}Z`);
  // PostgreSQL knows no year 0.
  return (
    TIME.test(text) &&
    !Number.isNaN(time.getTime()) &&
    !text.startsWith('0000') &&
    time.toISOString().startsWith(toTheMillisecond)
  );
}

/** Whether PostgreSQL can read it as a pg_snapshot: xmin, xmax and the transactions between them, in their order. */
function isSnapshot(text: string): boolean {
  const [, xmin, xmax, between] = SNAPSHOT.exec(text) ?? [];
  if (xmin === undefined || xmax === undefined) return false;
  const numbers = [xmin, ...(between?.split(',') ?? []), xmax].map(BigInt);
  return numbers[0] !== 0n && numbers.every((number, index) => index === 0 || number >= (numbers[index - 1] ?? 0n));
}

function checksum(question: string, text: string): string {
  return createHash('sha256').update(`${question}\u0000${text}`).digest('hex').slice(0, 32);
}
