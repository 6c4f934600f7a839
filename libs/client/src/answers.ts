import {
  DuplicateSubject,
  type DecisionState,
  type Facts,
  KeyReused,
  LeaseLost,
  type LedgerError,
  OutcomeUnknown,
  Refused,
  Rejected,
  SameContent,
  StillInFlight,
  Unavailable,
  type Unrecorded,
} from './errors.js';
import { type Members, membersOf, textOf } from './members.js';
import type { Answer, Exhausted } from './transport.js';

/** A decision that was applied, as the service recorded it. */
export interface Outcome<T = unknown> {
  /** UUID version 7. */
  readonly decisionId: string;
  /** The key of the decision; another than was asked with, if that one was bound to a decision with the same content. */
  readonly key: string;
  readonly outcome: { readonly status: 'applied'; readonly result: T };
  readonly effect: Effect;
  /** Whether it was recorded earlier and is only repeated here. */
  readonly replayed: boolean;
  readonly ledgerEntryId: string;
  /** RFC 3339, UTC, with microseconds: a text, because a `Date` would lose three digits. */
  readonly recordedAt: string;
}

export interface Effect {
  readonly effectId: string;
  /** The action's name. */
  readonly kind: string;
  readonly status: string;
  /** The provider's name for the effect; null if it has none. */
  readonly externalRef: string | null;
}

/** The key in the forms that providers take. The same for every run of the decision. */
export interface DownstreamKeys {
  readonly key: string;
  readonly hex40: string;
  readonly hex32: string;
  readonly uuid4: string;
}

/** The right to run, as the service gave it. */
export interface Claim {
  readonly key: string;
  readonly decisionId: string;
  readonly token: string;
  /** The fencing number: higher with every lease of the decision. */
  readonly number: number;
  /** RFC 3339, by the database's clock. */
  readonly lockedUntil: string;
  readonly downstreamKeys: DownstreamKeys;
}

/** Who asks, for the errors. */
export interface Asked {
  readonly key: string;
  /** Where it is known before the answer. */
  readonly decisionId?: string;
  /** What a lost lease would keep from being recorded. */
  readonly unrecorded?: Unrecorded | null;
  readonly cause?: unknown;
}

/** The recorded outcome of an answer; null if the answer has none. The type of the result is the caller's word. */
export function outcomeOf<T>({ body, replayed }: Answer): Outcome<T> | null {
  if (body === null) return null;
  const outcome = membersOf(body, 'outcome');
  const effect = membersOf(body, 'effect');
  if (outcome?.['status'] !== 'applied' || effect === null) return null;
  const [decisionId, key, ledgerEntryId, recordedAt] = texts(body, 'decisionId', 'key', 'ledgerEntryId', 'recordedAt');
  const [effectId, kind, status] = texts(effect, 'effectId', 'kind', 'status');
  if (!decisionId || !key || !ledgerEntryId || !recordedAt || !effectId || !kind || !status) return null;
  return {
    decisionId,
    key,
    outcome: { status: 'applied', result: outcome['result'] as T },
    effect: { effectId, kind, status, externalRef: textOf(effect, 'externalRef') },
    replayed,
    ledgerEntryId,
    recordedAt,
  };
}

/** The claim of a `202`; null if the answer is none. */
export function claimOf({ status, body }: Answer): Claim | null {
  const lease = status === 202 && body !== null ? membersOf(body, 'lease') : null;
  const forms = body === null ? null : membersOf(body, 'downstreamKeys');
  if (lease === null || body === null || forms === null) return null;
  const [key, decisionId] = texts(body, 'key', 'decisionId');
  const [token, lockedUntil] = texts(lease, 'token', 'lockedUntil');
  const [form, hex40, hex32, uuid4] = texts(forms, 'key', 'hex40', 'hex32', 'uuid4');
  const number = lease['number'];
  if (!key || !decisionId || !token || !lockedUntil || typeof number !== 'number') return null;
  if (!form || !hex40 || !hex32 || !uuid4) return null;
  return { key, decisionId, token, number, lockedUntil, downstreamKeys: { key: form, hex40, hex32, uuid4 } };
}

/** The error that an answer which is neither an outcome nor a claim stands for. */
export function errorOf(answer: Answer, asked: Asked): LedgerError {
  const { body, status, replayed } = answer;
  const facts = factsOf(body, asked);
  const code = body === null ? null : textOf(body, 'code');
  const detail = body === null ? null : (textOf(body, 'detail') ?? textOf(body, 'title'));
  const message = detail ?? `The service answered ${status}.`;
  switch (code) {
    case 'fingerprint-mismatch':
      return new KeyReused(message, facts);
    case 'duplicate-subject':
      return new DuplicateSubject(message, { ...facts, state: 'completed', replayed });
    case 'refused':
      return new Refused(message, { ...facts, state: 'completed', replayed });
    case 'same-content':
      return new SameContent(message, facts);
    case 'outcome-unknown':
      return new OutcomeUnknown(message, { ...facts, state: 'unknown' });
    case 'lease-lost':
      return new LeaseLost(message, { ...facts, unrecorded: asked.unrecorded ?? null });
    default:
      if (status < 300) return new Unavailable('The answer of the service could not be understood.', facts);
      return new Rejected(message, { ...facts, status });
  }
}

/** The error for tries that ran out. */
export function exhaustionOf(exhausted: Exhausted, asked: Asked): LedgerError {
  const { last } = exhausted;
  const facts = factsOf(last?.body ?? null, { ...asked, cause: asked.cause ?? exhausted.cause });
  if (last?.status === 202 || facts.problem?.['code'] === 'in-flight') {
    return new StillInFlight('The decision is still in flight.', { ...facts, state: facts.state ?? 'in_flight' });
  }
  const why = last === null ? '' : ` The last answer was ${last.status}.`;
  return new Unavailable(exhausted.message + why, facts);
}

function factsOf(body: Members | null, asked: Asked): Facts {
  const isProblem = body !== null && textOf(body, 'code') !== null;
  return {
    key: (body === null ? null : textOf(body, 'key')) ?? asked.key,
    decisionId: (body === null ? null : textOf(body, 'decisionId')) ?? asked.decisionId ?? null,
    state: stateOf(body),
    problem: isProblem ? body : null,
    ...(asked.cause === undefined ? {} : { cause: asked.cause }),
  };
}

function stateOf(body: Members | null): DecisionState | null {
  const state = body?.['state'];
  return state === 'in_flight' || state === 'completed' || state === 'failed' || state === 'unknown' ? state : null;
}

function texts(members: Members, ...names: readonly string[]): (string | null)[] {
  return names.map((name) => textOf(members, name));
}
