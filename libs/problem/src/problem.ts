import { PROBLEMS, type ProblemCode } from './catalogue.js';

/** A place in the request and what is wrong there. `pointer` is a JSON Pointer (RFC 6901), or a parameter's name. */
export interface ProblemPlace {
  readonly pointer: string;
  readonly detail: string;
}

/** What a problem may carry beside its code and its sentence. */
export interface ProblemExtras {
  /** Members added to the body, in this order. */
  readonly members?: Readonly<Record<string, unknown>>;
  /** Headers added to the answer. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** An answer that is not a success, as RFC 9457 describes it. Thrown anywhere, written out in one place. */
export class Problem extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  private readonly members: Readonly<Record<string, unknown>>;

  /** @param detail one sentence for whoever has to act on it. */
  constructor(
    readonly code: ProblemCode,
    readonly detail: string,
    extras: ProblemExtras = {},
  ) {
    super(`${code}: ${detail}`);
    this.status = PROBLEMS[code].status;
    this.members = extras.members ?? {};
    this.headers = extras.headers ?? {};
  }

  /** The body as RFC 9457, section 3.1, with the members of this API: `code`, `retryable`, `requestId`. */
  body(requestId: string): Record<string, unknown> {
    const { status, title, retryable } = PROBLEMS[this.code];
    return {
      type: `urn:decision-ledger:problem:${this.code}`,
      title,
      status,
      detail: this.detail,
      code: this.code,
      retryable,
      requestId,
      ...this.members,
    };
  }
}

/** A request can be wrong in more places than anyone reads; the answer must not grow with it. */
const MOST_PLACES = 50;

/** `400 validation-failed` for one or more places. */
export function validationFailed(all: readonly ProblemPlace[]): Problem {
  const places = all.slice(0, MOST_PLACES);
  const more = all.length > places.length ? `; and ${all.length - places.length} places more` : '';
  const detail = places.map(({ pointer, detail: what }) => `${pointer || 'The body'}: ${what}`).join('; ') + more;
  return new Problem('validation-failed', detail, { members: { errors: places } });
}
