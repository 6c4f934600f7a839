/**
 * Every problem that the service can answer with: its status, its title, and whether the same request may succeed
 * later. `docs/problems.md` is generated from this table.
 */
export const PROBLEMS = {
  'malformed-request': { status: 400, title: 'The body is not the JSON this service accepts', retryable: false },
  'validation-failed': { status: 400, title: 'The request breaks the rules of a field', retryable: false },
  'invalid-idempotency-key': { status: 400, title: 'The Idempotency-Key is not a valid key', retryable: false },
  unauthenticated: { status: 401, title: 'A valid credential is required', retryable: false },
  forbidden: { status: 403, title: 'The role of the credential may not do this', retryable: false },
  'tenant-mismatch': { status: 403, title: 'The inputs name another tenant', retryable: false },
  'not-found': { status: 404, title: 'There is nothing here', retryable: false },
  'method-not-allowed': { status: 405, title: 'The resource does not know this method', retryable: false },
  'duplicate-subject': { status: 409, title: 'The subject has this effect already', retryable: false },
  refused: { status: 409, title: 'The effect was refused by its own rule', retryable: false },
  'same-content': { status: 409, title: 'Another key carries the same decision', retryable: false },
  'tenant-exists': { status: 409, title: 'The tenant exists already', retryable: false },
  'in-flight': { status: 409, title: 'A request with this key is under way', retryable: true },
  'too-large': { status: 413, title: 'The body is too large', retryable: false },
  'unsupported-media-type': { status: 415, title: 'The body must be application/json', retryable: false },
  'fingerprint-mismatch': { status: 422, title: 'The key was used for another request', retryable: false },
  'key-derivation-mismatch': { status: 422, title: 'The key is not the content key of these inputs', retryable: false },
  'unknown-action': { status: 422, title: 'The action is not in the inventory', retryable: false },
  'unsupported-execution': { status: 422, title: 'The execution of the action is not supported', retryable: false },
  'too-many-requests': { status: 429, title: 'Too many requests at once', retryable: true },
  internal: { status: 500, title: 'Something went wrong here', retryable: true },
  unavailable: { status: 503, title: 'The database cannot be reached', retryable: true },
} as const satisfies Record<string, { status: number; title: string; retryable: boolean }>;

export type ProblemCode = keyof typeof PROBLEMS;

export const isProblemCode = (code: string): code is ProblemCode => Object.hasOwn(PROBLEMS, code);
