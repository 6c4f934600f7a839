import { createHash } from 'node:crypto';

/** The place of the last row of a page: its time, as the database spells it, and its id. */
export interface Position {
  readonly recordedAt: string;
  readonly decisionId: string;
}

const FORM = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)~([0-9a-f-]{36})~([0-9a-f]{32})$/;

/**
 * Writes a position as an opaque cursor. It is bound to the question (tenant, filters, order), so that it cannot be used
 * for another. It is a checksum and no secret: a cursor opens nothing that its credential does not open.
 */
export function writeCursor(question: string, { recordedAt, decisionId }: Position): string {
  const text = `${recordedAt}~${decisionId}`;
  return Buffer.from(`${text}~${checksum(question, text)}`).toString('base64url');
}

/** Reads a cursor; null if it is none, or belongs to another question. */
export function readCursor(question: string, cursor: string): Position | null {
  const [whole, recordedAt, decisionId, check] = FORM.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? [];
  if (whole === undefined || recordedAt === undefined || decisionId === undefined) return null;
  if (Buffer.from(whole).toString('base64url') !== cursor || !isTime(recordedAt) || !UUID.test(decisionId)) return null;
  return check === checksum(question, `${recordedAt}~${decisionId}`) ? { recordedAt, decisionId } : null;
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Whether a time exists; the form has been looked at. */
function isTime(text: string): boolean {
  const toTheMillisecond = text.slice(0, 23);
  const time = new Date(`${toTheMillisecond}Z`);
  // PostgreSQL knows no year 0.
  return !Number.isNaN(time.getTime()) && !text.startsWith('0000') && time.toISOString().startsWith(toTheMillisecond);
}

function checksum(question: string, text: string): string {
  return createHash('sha256').update(`${question}\u0000${text}`).digest('hex').slice(0, 32);
}
