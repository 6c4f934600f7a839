/**
 * Registered with the realm and not with this module, so that a verdict is recognised also where one program has loaded the
 * package twice, as an ES module and as CommonJS.
 */
const VERDICT = Symbol.for('@decision-ledger/client.verdict');

/**
 * What `run` returns when the provider has given the effect a name of its own.
 *
 * `result` is recorded as JSON, as `JSON.stringify` writes it; `externalRef`: 1–255 characters, by which the ledger can be
 * searched.
 */
export class Applied<T> {
  readonly [VERDICT] = 'applied';

  constructor(
    readonly result: T,
    readonly externalRef: string,
  ) {}
}

/**
 * Thrown by `run` when it is certain that nothing happened, as before the first byte was sent. The key is free again: the
 * next `decide` runs. The reason is recorded, cut to 255 characters.
 */
export class NoEffect extends Error {
  override readonly name = 'NoEffect';
  readonly [VERDICT] = 'no-effect';

  constructor(reason: string, options: ErrorOptions = {}) {
    super(reason, options);
  }
}

/**
 * Thrown by `run` when the system that was asked has said no, and would again. That is an outcome: it is recorded, and every
 * later `decide` with the key is told the same. `reason`: a stable word such as `limit-exceeded`.
 */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly [VERDICT] = 'refusal';

  constructor(
    readonly reason: string,
    readonly detail?: string,
  ) {
    super(detail === undefined ? reason : `${reason}: ${detail}`);
  }
}

export function isApplied(value: unknown): value is Applied<unknown> {
  return verdictOf(value) === 'applied';
}

export function isNoEffect(error: unknown): error is NoEffect {
  return verdictOf(error) === 'no-effect';
}

export function isRefusal(error: unknown): error is Refusal {
  return verdictOf(error) === 'refusal';
}

function verdictOf(value: unknown): unknown {
  return typeof value === 'object' && value !== null && VERDICT in value ? value[VERDICT] : undefined;
}
