import { QueryFailedError } from 'typeorm';
import { Problem } from '#problem';

/** What a failed statement means for whoever sent it. */
export type Failure =
  /** Somebody holds the row for longer than we were willing to wait (55P03): let go of the connection, come back. */
  | 'lock-timeout'
  /** Two transactions stood in each other's way (40001, 40P01): a new transaction may succeed at once. */
  | 'conflict'
  /** The server could not be reached, or went away: nothing is known to have been recorded. */
  | 'unavailable'
  | 'other';

const UNAVAILABLE_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'EPIPE',
  '25006', // read_only_sql_transaction: a standby that has not been promoted
  '25P03', // idle_in_transaction_session_timeout
  '53100', // disk_full
  '53200', // out_of_memory
  '53300', // too_many_connections
  '57014', // query_canceled, by statement_timeout
  '57P01', // admin_shutdown
  '57P02', // crash_shutdown
  '57P03', // cannot_connect_now
  '57P05', // idle_session_timeout
  '58000', // system_error
  '58030', // io_error
]);

/** The driver gives some failures of the connection no code, only these sentences. */
const UNAVAILABLE_MESSAGE =
  /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|not queryable|connection is closed|Driver not Connected|Cannot use a pool after calling end|already released/i;

function codeOf(error: object): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** Sorts an error by what can be done about it. Codes are SQLSTATE (PostgreSQL, appendix A) or Node's. */
export function classifyFailure(error: unknown): Failure {
  if (!(error instanceof Error)) return 'other';
  if (error instanceof AggregateError && error.errors.length > 0) return classifyFailure(error.errors[0]);
  const driverError: unknown = error instanceof QueryFailedError ? error.driverError : error;
  const code = driverError instanceof Error ? codeOf(driverError) : '';
  if (code === '55P03') return 'lock-timeout';
  if (code === '40001' || code === '40P01') return 'conflict';
  if (code.startsWith('08') || UNAVAILABLE_CODES.has(code) || UNAVAILABLE_MESSAGE.test(error.message))
    return 'unavailable';
  return 'other';
}

/** The name of the constraint that a statement violated, or null. */
export function violatedConstraint(error: unknown): string | null {
  const driverError: unknown = error instanceof QueryFailedError ? error.driverError : error;
  const violated = driverError instanceof Error && codeOf(driverError) === '23505' && 'constraint' in driverError;
  return violated ? String(driverError.constraint) : null;
}

/** What a caller is told about a failure: never its text, which may speak of the schema or the server. */
export function failureProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return classifyFailure(error) === 'other'
    ? new Problem(
        'internal',
        'Something went wrong here; the request left nothing behind. Send it again with the same key.',
      )
    : new Problem(
        'unavailable',
        'The database cannot be reached at the moment. Send the same request again with the same key.',
        {
          headers: { 'retry-after': '1' },
        },
      );
}

/** The DETAIL of a failed statement, or null. */
export function failureDetail(error: unknown): string | null {
  const driverError: unknown = error instanceof QueryFailedError ? error.driverError : error;
  return driverError instanceof Error && 'detail' in driverError && typeof driverError.detail === 'string'
    ? driverError.detail
    : null;
}
