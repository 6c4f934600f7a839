interface ProblemKind {
  readonly status: number;
  readonly title: string;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** What a caller does about it: a sentence for the page of problems. */
  readonly advice: string;
}

/** Every problem that the service can answer with. `docs/problems.md` is generated from this table. */
export const PROBLEMS = {
  'malformed-request': {
    status: 400,
    title: 'The body is not the JSON this service accepts',
    retryable: false,
    advice:
      'Mend the bytes at the place that `errors` points to: bodies are UTF-8 without a byte order mark, without duplicate members, and without numbers that would not survive RFC 8785. Nothing was recorded, so the same key may be used.',
  },
  'validation-failed': {
    status: 400,
    title: 'The request breaks the rules of a field',
    retryable: false,
    advice: 'Mend the fields or parameters that `errors` names. Nothing was recorded, so the same key may be used.',
  },
  'invalid-idempotency-key': {
    status: 400,
    title: 'The Idempotency-Key is not a valid key',
    retryable: false,
    advice:
      'Send one header: an RFC 9651 String or its characters bare, 1–255 of printable ASCII. Or send none and let the content be the key.',
  },
  unauthenticated: {
    status: 401,
    title: 'A valid credential is required',
    retryable: false,
    advice:
      'Send `Authorization: Bearer dlk_…` with a credential that has neither expired nor been revoked, or a JWT of the identity provider that the service is told of. `WWW-Authenticate` says what is wrong with a JWT.',
  },
  forbidden: {
    status: 403,
    title: 'The role of the credential may not do this',
    retryable: false,
    advice: 'Use a credential of the role that the detail names.',
  },
  'tenant-mismatch': {
    status: 403,
    title: 'The inputs name another tenant',
    retryable: false,
    advice: 'Leave `inputs.tenantId` out, or use the credential of that tenant.',
  },
  'not-found': {
    status: 404,
    title: 'There is nothing here',
    retryable: false,
    advice: 'The route, the decision or the key does not exist for this tenant.',
  },
  'method-not-allowed': {
    status: 405,
    title: 'The resource does not know this method',
    retryable: false,
    advice: 'Use a method of the `Allow` header.',
  },
  'duplicate-subject': {
    status: 409,
    title: 'The subject has this effect already',
    retryable: false,
    advice:
      'Stop: `winner` is the decision that stands. This one is recorded as refused, and every retry of it is told the same.',
  },
  refused: {
    status: 409,
    title: 'The effect was refused by its own rule',
    retryable: false,
    advice: 'Stop, or decide anew with other inputs: `reason` says which rule. The refusal is recorded and repeated.',
  },
  'same-content': {
    status: 409,
    title: 'Another key carries the same decision',
    retryable: false,
    advice: 'Take the decision that `winner` names. This key stays unused.',
  },
  'tenant-exists': {
    status: 409,
    title: 'The tenant exists already',
    retryable: false,
    advice: 'Choose another slug, or use the credentials of the tenant that is there.',
  },
  'in-flight': {
    status: 409,
    title: 'A request with this key is under way',
    retryable: true,
    advice: 'Send the same request with the same key again after `Retry-After` seconds.',
  },
  'not-sealed': {
    status: 409,
    title: 'The entry is not in the log yet',
    retryable: true,
    advice:
      'It is recorded, and stays so. Ask again after `Retry-After` seconds, or with `Prefer: wait=N`; if it lasts, see whether a worker runs.',
  },
  'lease-lost': {
    status: 409,
    title: 'The lease is held by another, or has ended',
    retryable: false,
    advice:
      'Stop: do not run the effect, and do not report it again. Ask for the decision by its id; whoever holds it now will record the outcome.',
  },
  'outcome-unknown': {
    status: 409,
    title: 'Nobody knows whether the effect happened',
    retryable: false,
    advice:
      'Do not run it again. An admin looks at the other system and resolves the decision that `decisionId` names; until then every request with this key is told the same.',
  },
  'not-unknown': {
    status: 409,
    title: 'The decision is not unknown',
    retryable: false,
    advice: 'There is nothing to resolve: `state` says how the decision stands.',
  },
  'too-large': {
    status: 413,
    title: 'The body is too large',
    retryable: false,
    advice:
      'Send at most 256 KiB, or 4 MiB to the batch route. Put large documents elsewhere and their hash into the inputs.',
  },
  'unsupported-media-type': {
    status: 415,
    title: 'The body must be application/json',
    retryable: false,
    advice: 'Send `Content-Type: application/json` in UTF-8, without a content coding.',
  },
  'fingerprint-mismatch': {
    status: 422,
    title: 'The key was used for another request',
    retryable: false,
    advice:
      'Look at the decision that `decisionId` names: it stands. If another effect is meant, it needs another key.',
  },
  'key-derivation-mismatch': {
    status: 422,
    title: 'The key is not the content key of these inputs',
    retryable: false,
    advice: 'Derive the key again from the inputs that are sent, or send no key.',
  },
  'unknown-action': {
    status: 422,
    title: 'The action is not in the inventory',
    retryable: false,
    advice: 'Mend the name, or let an admin put the action into the inventory. Nothing was recorded.',
  },
  'host-not-allowed': {
    status: 422,
    title: 'The service may not call this host',
    retryable: false,
    advice: 'Mend the url, or have the operator add the host to `DISPATCH_ALLOWED_HOSTS`. The action was not changed.',
  },
  'unknown-secret': {
    status: 422,
    title: 'The service has no such secret',
    retryable: false,
    advice:
      'Mend the name, or have the operator set the variable in the environment of the service. The action was not changed.',
  },
  internal: {
    status: 500,
    title: 'Something went wrong here',
    retryable: true,
    advice:
      'Send the same request with the same key again: nothing was kept. If it stays, give the `requestId` to whoever runs the service.',
  },
  unavailable: {
    status: 503,
    title: 'What the answer depends on cannot be reached, or has too much to do',
    retryable: true,
    advice:
      'Send the same request with the same key again after a pause. Whether or not the first one was recorded, it is recorded once.',
  },
} as const satisfies Record<string, ProblemKind>;

export type ProblemCode = keyof typeof PROBLEMS;

export const isProblemCode = (code: string): code is ProblemCode => Object.hasOwn(PROBLEMS, code);
