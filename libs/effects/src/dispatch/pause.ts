const BASE_MS = 200;
const CAP_MS = 30_000;
/** Further than any window reaches; a greater number would only be a greater "never". */
const LONGEST_RETRY_AFTER_MS = 2_592_000_000;
const MS_A_SECOND = 1000;

/**
 * The pause before the next try: exponential, with full jitter, so that callers who failed together do not come back
 * together. Never shorter than the downstream asked for.
 *
 * @param tries how many have been made: 1 after the first
 * @param random from 0 up to 1
 */
export function pauseMs(tries: number, retryAfterMs: number | null, random: () => number = Math.random): number {
  return Math.max(random() * Math.min(CAP_MS, BASE_MS * 2 ** (tries - 1)), retryAfterMs ?? 0);
}

/**
 * `Retry-After` (RFC 9110, section 10.2.3) in milliseconds: seconds, or a date, which is read by the answer's own `Date`, so
 * that a downstream whose clock is wrong still means the same span. Null if there is none that can be read.
 *
 * @param now what time it is, in milliseconds since 1970, for an answer without a `Date`
 */
export function retryAfterMs(retryAfter: string | undefined, date: string | undefined, now: number): number | null {
  if (retryAfter === undefined) return null;
  const text = retryAfter.trim();
  const span = /^\d{1,12}$/.test(text) ? Number(text) * MS_A_SECOND : spanUntil(text, date, now);
  return Number.isFinite(span) ? Math.min(Math.max(span, 0), LONGEST_RETRY_AFTER_MS) : null;
}

function spanUntil(httpDate: string, date: string | undefined, now: number): number {
  // Every form of an HTTP date begins with the name of a day; what else Date.parse takes is not one.
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(httpDate)) return Number.NaN;
  const from = date === undefined ? Number.NaN : Date.parse(date);
  return Date.parse(httpDate) - (Number.isNaN(from) ? now : from);
}
