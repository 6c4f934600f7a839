import type { Unrecorded } from './errors.js';
import type { Report } from './journal.js';
import { parseStrictJson } from './key.js';
import { isMembers, jsonOf, membersOf, textOf } from './members.js';
import { isApplied, isNoEffect, isRefusal } from './verdict.js';

/** What the service takes as one body. */
const MAX_BODY_BYTES = 256 * 1024;

/** What the service takes as a reason, in code points. */
const MAX_REASON_LENGTH = 255;

/** What an error says of the effect if it is neither a `NoEffect` nor a `Refusal`. */
export type ErrorsMean = 'unknown' | 'no-effect';

/** How a run ended: what is to be reported, and the error that the caller is to see as the cause. */
export interface Ending {
  readonly report: Report;
  readonly cause: unknown;
}

/**
 * The ending of a run that returned. The effect has happened; if what was returned cannot be recorded (a cycle, a bigint, an
 * integer beyond 2^53, more than 256 KiB), that is reported as an effect that is unknown, for a person to resolve: silence
 * would let the lease run out and the effect be run again.
 */
export function endingOfValue(leaseToken: string, value: unknown): Ending {
  try {
    const { result, externalRef } = isApplied(value) ? value : { result: value, externalRef: undefined };
    // What JSON has no form for, as a tool that returns nothing, is recorded as null.
    const text = JSON.stringify(result) ?? 'null';
    const body = JSON.stringify({ leaseToken, outcome: { status: 'applied', result: JSON.parse(text), externalRef } });
    const bytes = Buffer.from(body);
    if (bytes.length > MAX_BODY_BYTES) throw new RangeError(`It is longer than ${MAX_BODY_BYTES} bytes.`);
    parseStrictJson(bytes);
    return { report: { route: 'completion', body }, cause: undefined };
  } catch (cause) {
    return failure(leaseToken, `The result of run cannot be recorded. ${messageOf(cause)}`, 'unknown', cause);
  }
}

/** The ending of a run that threw. */
export function endingOfError(leaseToken: string, error: unknown, errorsMean: ErrorsMean): Ending {
  if (isRefusal(error)) {
    const outcome = {
      status: 'refused',
      reason: wellFormed(error.reason),
      detail: error.detail && wellFormed(error.detail),
    };
    return { report: { route: 'completion', body: JSON.stringify({ leaseToken, outcome }) }, cause: error };
  }
  const effect = isNoEffect(error) || errorsMean === 'no-effect' ? 'none' : 'unknown';
  return failure(leaseToken, messageOf(error), effect, error);
}

/** Instead of a completion whose body the service does not take: nothing happened if it was a refusal, else nobody knows. */
export function endingOfRejected(leaseToken: string, report: Report, cause: Error): Ending {
  const effect = unrecordedOf(report)?.status === 'refused' ? 'none' : 'unknown';
  return failure(leaseToken, `The outcome cannot be recorded. ${cause.message}`, effect, cause);
}

/** The ending of a lease under which nothing was begun. */
export function endingOfNothing(leaseToken: string, reason: string): Ending {
  return failure(leaseToken, reason, 'none', undefined);
}

/** The outcome that a report carries; null if it reports a failure. */
export function unrecordedOf(report: Report): Unrecorded | null {
  const body = jsonOf(report.body);
  const outcome = report.route === 'completion' && isMembers(body) ? membersOf(body, 'outcome') : null;
  if (outcome === null) return null;
  if (outcome['status'] === 'refused') return { status: 'refused', reason: textOf(outcome, 'reason') ?? '' };
  return { status: 'applied', result: outcome['result'], externalRef: textOf(outcome, 'externalRef') };
}

/** The lease token that a report carries. */
export function leaseTokenOf(report: Report): string {
  const body = jsonOf(report.body);
  return (isMembers(body) ? textOf(body, 'leaseToken') : null) ?? '';
}

function failure(leaseToken: string, message: string, effect: 'none' | 'unknown', cause: unknown): Ending {
  const reason = [...wellFormed(message)].slice(0, MAX_REASON_LENGTH).join('') || 'No reason was given.';
  return { report: { route: 'failure', body: JSON.stringify({ leaseToken, reason, effect }) }, cause };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}

/** Without what the service takes in no text: lone surrogates and U+0000. */
function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}|\0/gu, '\ufffd');
}
