import { type Members, membersOf, textOf } from './members.js';

/** Where a decision stands, as the service last said. */
export type DecisionState = 'in_flight' | 'completed' | 'failed' | 'unknown';

/** The decision that stands in the way of another. */
export interface Winner {
  readonly decisionId: string;
  readonly key: string;
  readonly recordedAt: string;
}

/** What every error of this package knows. */
export interface Facts {
  readonly key: string;
  /** Null where the service has recorded no decision, or has not been heard. */
  readonly decisionId: string | null;
  readonly state: DecisionState | null;
  /** The problem document (RFC 9457) that the service answered with; null if it was not the service that failed. */
  readonly problem: Members | null;
  readonly cause?: unknown;
}

/** An error that says which decision it is about and where that stands. */
export abstract class LedgerError extends Error implements Facts {
  readonly key: string;
  readonly decisionId: string | null;
  readonly state: DecisionState | null;
  readonly problem: Members | null;

  constructor(message: string, facts: Facts) {
    super(message, facts.cause === undefined ? {} : { cause: facts.cause });
    this.key = facts.key;
    this.decisionId = facts.decisionId;
    this.state = facts.state;
    this.problem = facts.problem;
  }

  /** The problem's code, such as `in-flight`; null without a problem. */
  get code(): string | null {
    return this.problem === null ? null : textOf(this.problem, 'code');
  }

  /** For whoever runs the service; null without a problem. */
  get requestId(): string | null {
    return this.problem === null ? null : textOf(this.problem, 'requestId');
  }
}

/** `422 fingerprint-mismatch`: the key stands for another request. `decisionId` names the decision that it stands for. */
export class KeyReused extends LedgerError {
  override readonly name = 'KeyReused';
}

/** A recorded refusal. */
abstract class RecordedRefusal extends LedgerError {
  /** Whether it was recorded earlier and is only repeated here. */
  readonly replayed: boolean;

  constructor(message: string, facts: Facts & { readonly replayed: boolean }) {
    super(message, facts);
    this.replayed = facts.replayed;
  }

  get ledgerEntryId(): string | null {
    return this.problem === null ? null : textOf(this.problem, 'ledgerEntryId');
  }

  /** RFC 3339, UTC, with microseconds. */
  get recordedAt(): string | null {
    return this.problem === null ? null : textOf(this.problem, 'recordedAt');
  }
}

/** `409 duplicate-subject`: the subject (and period) has this effect already, by `winner`. Recorded and repeated. */
export class DuplicateSubject extends RecordedRefusal {
  override readonly name = 'DuplicateSubject';

  get winner(): Winner | null {
    return winnerOf(this.problem);
  }
}

/** `409 refused`: the effect's own rule, or `run`, said no. Recorded and repeated. */
export class Refused extends RecordedRefusal {
  override readonly name = 'Refused';

  get reason(): string | null {
    return this.problem === null ? null : textOf(this.problem, 'reason');
  }
}

/** `409 same-content`: another key carries the same decision, `winner`. This key stays unused. */
export class SameContent extends LedgerError {
  override readonly name = 'SameContent';

  get winner(): Winner | null {
    return winnerOf(this.problem);
  }
}

/**
 * The effect may have happened and nobody knows: `run` threw something that does not say (then `cause` is that), what it
 * returned cannot be recorded, or the service answered `409 outcome-unknown`. Nobody runs it again by machine; an admin
 * resolves it.
 */
export class OutcomeUnknown extends LedgerError {
  override readonly name = 'OutcomeUnknown';
}

/** An outcome that a lost lease kept from being recorded. */
export type Unrecorded =
  | { readonly status: 'applied'; readonly result: unknown; readonly externalRef: string | null }
  | { readonly status: 'refused'; readonly reason: string };

/**
 * `409 lease-lost`: the lease ran out and somebody else took the decision over, so what `run` did was not recorded.
 * `unrecorded` is what would have been; null if `run` failed (then `cause` is its error). The next `decide` gives what the
 * other holder recorded.
 */
export class LeaseLost extends LedgerError {
  override readonly name = 'LeaseLost';
  readonly unrecorded: Unrecorded | null;

  constructor(message: string, facts: Facts & { readonly unrecorded: Unrecorded | null }) {
    super(message, facts);
    this.unrecorded = facts.unrecorded;
  }
}

/** `run` failed and is known to have had no effect; `cause` is its error. The next `decide` runs again. */
export class RunFailed extends LedgerError {
  override readonly name = 'RunFailed';
}

/** The tries or the budget ran out while another request had the decision in flight. Call again later. */
export class StillInFlight extends LedgerError {
  override readonly name = 'StillInFlight';
}

/**
 * The tries or the budget ran out without a usable answer. `cause` is what `run` threw, if it did, else the last failure of the
 * network. What was to be said stays in the store: the next `decide` with the same inputs, or `resume`, says it with the
 * same bytes.
 */
export class Unavailable extends LedgerError {
  override readonly name = 'Unavailable';
}

/**
 * The service will not take the request as it is: 400, 401, 403, 404, 413, 415 or 422. Nothing was recorded for it. Or it was
 * not the service that answered: a redirect, which is not followed.
 */
export class Rejected extends LedgerError {
  override readonly name = 'Rejected';
  /** The HTTP status. */
  readonly status: number;

  constructor(message: string, facts: Facts & { readonly status: number }) {
    super(message, facts);
    this.status = facts.status;
  }
}

/**
 * `run` was given for an action that the service executes itself (the decision is `completed`, and `run` was not called), or
 * none was given for one that the caller executes (it is `failed`: nothing was done, the key is free).
 */
export class WrongExecution extends LedgerError {
  override readonly name = 'WrongExecution';
}

function winnerOf(problem: Members | null): Winner | null {
  const winner = problem === null ? null : membersOf(problem, 'winner');
  if (winner === null) return null;
  const decisionId = textOf(winner, 'decisionId');
  const key = textOf(winner, 'key');
  const recordedAt = textOf(winner, 'recordedAt');
  return decisionId === null || key === null || recordedAt === null ? null : { decisionId, key, recordedAt };
}
