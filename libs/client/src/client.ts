import type { Outcome } from './answers.js';
import { carryOut, isComingBack, type Means, resumeOne } from './decide.js';
import type { ErrorsMean } from './ending.js';
import { type DecisionState, LedgerError } from './errors.js';
import { Journal } from './journal.js';
import { type DecisionInputs, type Evidence, newLeaseNonce, registrationOf } from './request.js';
import { retryPolicy, type RetryPolicy } from './retry.js';
import type { Run } from './run.js';
import type { Store } from './store.js';
import { Transport } from './transport.js';

/** The longest time that the service holds a request for. */
const MAX_WAIT_SECONDS = 30;

export interface ClientSettings {
  /** Where the service is, such as `https://ledger.internal`; a path in it is kept. */
  readonly url: string;
  /** An orchestrator's token, or what gives it: it is asked before each try, so a token may be rotated meanwhile. */
  readonly token: string | (() => string | Promise<string>);
  /** The tenant of the token. The key is derived from it; a token of another tenant is refused. */
  readonly tenant: string;
  /** What is to survive a crash: `fileStore(folder)`, or `memoryStore()` if nothing need. */
  readonly store: Store;
  /** For each exchange with the service; 5 tries within 30 s unless told otherwise. */
  readonly retry?: Partial<RetryPolicy>;
  /**
   * How long the service is to hold a request whose decision is still in flight before it says so: whole seconds, 0–30. The
   * service's own default is 2.
   */
  readonly waitSeconds?: number;
  readonly fetch?: typeof fetch;
}

export interface DecideOptions {
  /** A key of the caller's own, if there is a durable step identity. Absent, the content is the key. */
  readonly key?: string | undefined;
  /** Goes with the action. Not in the key, but the same key with another note is `KeyReused`. */
  readonly note?: string | undefined;
  readonly evidence?: Evidence | undefined;
  /** Ends the waiting for an answer, and is passed on to `run`. The report of a run that has begun is not cut short by it. */
  readonly signal?: AbortSignal | undefined;
  /** What an error of `run` means that is neither a `NoEffect` nor a `Refusal`; `unknown` unless told otherwise. */
  readonly errorsMean?: ErrorsMean | undefined;
}

/** An outcome that an earlier life of the process had kept, and what became of it. */
export interface Resumed {
  readonly key: string;
  readonly decisionId: string;
  /** `in_flight`: it could not be reported, and is kept. Null: it cannot be reported any more, `error` says why. */
  readonly state: DecisionState | null;
  readonly error: Error | null;
}

export interface Client {
  /**
   * Decides once. Registers the decision; if the service gives a lease, calls `run` under it and records what comes of it; if
   * an outcome is recorded already, gives that and does not call `run`. Without `run`: for actions that the service executes.
   *
   * Safe to call again with the same inputs at any time, from any process: that is what to do after every error whose advice
   * is to come back, and after a restart.
   *
   * @throws DuplicateSubject, Refused: recorded refusals
   * @throws KeyReused, SameContent, Rejected, WrongExecution: the request is at fault
   * @throws OutcomeUnknown, LeaseLost, RunFailed: how the run ended
   * @throws StillInFlight, Unavailable: come back later
   * @throws TypeError, InvalidIdempotencyKey: the inputs are not plain JSON, the key can be none; nothing was sent
   * @throws the reason of `options.signal`
   */
  decide<T = unknown>(inputs: DecisionInputs, run?: Run<T>, options?: DecideOptions): Promise<Outcome<T>>;
  /**
   * Reports the outcomes that were kept and not reported when the process died: to be called once at the start, where it is
   * not certain that each decision will be asked for again. Runs nothing.
   */
  resume(): Promise<Resumed[]>;
}

/** @throws RangeError naming the setting that cannot be used */
export function createClient(settings: ClientSettings): Client {
  const { tenant, waitSeconds = null } = settings;
  if (waitSeconds !== null && !(Number.isInteger(waitSeconds) && waitSeconds >= 0 && waitSeconds <= MAX_WAIT_SECONDS)) {
    throw new RangeError(`waitSeconds is a whole number from 0 to ${MAX_WAIT_SECONDS}.`);
  }
  const transport = new Transport({
    url: settings.url,
    token: settings.token,
    fetch: settings.fetch ?? globalThis.fetch,
    retry: retryPolicy(settings.retry),
  });
  const means: Means = { transport, journal: new Journal(settings.store), waitSeconds };
  return {
    async decide(inputs, run, options = {}) {
      const { key, note, evidence, signal, errorsMean = 'unknown' } = options;
      signal?.throwIfAborted();
      const register = () =>
        registrationOf({ tenant, inputs, key, note, evidence, leaseNonce: run === undefined ? null : newLeaseNonce() });
      return carryOut(means, register, run, { signal, errorsMean });
    },
    async resume() {
      const resumed: Resumed[] = [];
      for (const id of await means.journal.ids()) {
        for (const { begun, reported } of await resumeOne(means, id)) {
          resumed.push({ key: begun.key, decisionId: begun.decisionId, ...standing(reported) });
        }
      }
      return resumed;
    },
  };
}

function standing(reported: Outcome | 'failed' | 'unknown' | Error): Pick<Resumed, 'state' | 'error'> {
  if (typeof reported === 'string') return { state: reported, error: null };
  if (!(reported instanceof Error)) return { state: 'completed', error: null };
  if (isComingBack(reported)) return { state: 'in_flight', error: reported };
  return { state: reported instanceof LedgerError ? reported.state : null, error: reported };
}
