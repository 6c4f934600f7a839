import type { Client } from './client.js';
import type { ErrorsMean } from './ending.js';
import { DuplicateSubject, Refused } from './errors.js';
import { canonicalJson, type JsonObject, type JsonValue } from './key.js';
import type { DecisionInputs, Evidence } from './request.js';
import type { RunContext } from './run.js';
import type { Applied } from './verdict.js';

/** The basis that an agent's decisions have in common. */
export type DecisionContext = Pick<
  DecisionInputs,
  'model' | 'promptTemplateSha256' | 'retrievalSnapshotId' | 'policyVersion'
>;

/** A tool as agent frameworks know it, with the lease's context added. */
export type Tool<A, R> = (args: A, context: RunContext) => R | Applied<R> | Promise<R | Applied<R>>;

export interface LedgeredOptions<A> {
  readonly ledger: Pick<Client, 'decide'>;
  /** The action of the inventory: one that the caller executes. */
  readonly action: string;
  readonly subject: (args: A) => { readonly type: string; readonly id: string };
  /**
   * The arguments that say which effect is meant; they become `params`. What the model words anew at each call, as a reason or
   * a summary, is not among them. A call without one of them is a TypeError: with less to tell them apart, two effects
   * would be one.
   */
  readonly identify: readonly (keyof A & string)[];
  /** Given once, or asked for at each call. */
  readonly context: DecisionContext | (() => DecisionContext);
  readonly note?: (args: A) => string | undefined;
  readonly errorsMean?: ErrorsMean;
}

/** What goes with one call. */
export interface ToolCall {
  /** The turn that the call belongs to. Without one, only the service's memory makes two calls one. */
  readonly turn?: Turn | undefined;
  readonly evidence?: Evidence | undefined;
  /** Of the first of several equal calls in a turn, it counts for all of them. */
  readonly signal?: AbortSignal | undefined;
}

/** One loop of an agent over its tools: the calls in it that mean the same effect are one call. */
export class Turn {
  readonly #calls = new Map<string, Promise<unknown>>();

  /** What `call` gives, asked at most once for an identity. What may turn out otherwise next time is asked again. */
  once<R>(identity: string, call: () => Promise<R>): Promise<R> {
    const known = this.#calls.get(identity);
    // An identity names the action, and an action has one tool; so the promise has this type.
    if (known !== undefined) return known as Promise<R>;
    const made = call();
    this.#calls.set(identity, made);
    made.catch((error: unknown) => {
      const isFinal = error instanceof Refused || error instanceof DuplicateSubject;
      if (!isFinal) this.#calls.delete(identity);
    });
    return made;
  }
}

export function newTurn(): Turn {
  return new Turn();
}

/**
 * Makes a tool into one that registers a decision before it acts, and acts once.
 *
 * @returns a function that gives the tool's result as it was recorded (so, JSON), now or earlier; it throws what
 * `Client.decide` throws
 */
export function ledgered<A extends object, R>(
  tool: Tool<A, R>,
  options: LedgeredOptions<A>,
): (args: A, call?: ToolCall) => Promise<R> {
  const { ledger, action, subject, identify, errorsMean } = options;
  if (identify.length === 0) throw new TypeError('identify names at least one argument.');
  return async (args, { turn, evidence, signal } = {}) => {
    const context = typeof options.context === 'function' ? options.context() : options.context;
    const { type, id } = subject(args);
    const inputs = { ...context, subject: { type, id }, action, params: identityOf(args, identify) };
    const note = options.note?.(args);
    const call = async (): Promise<R> => {
      const how = { note, evidence, signal, errorsMean };
      const { outcome } = await ledger.decide<R>(inputs, (lease) => tool(args, lease), how);
      return outcome.result;
    };
    return turn === undefined ? call() : turn.once(identityText(inputs), call);
  };
}

/** Without the note: the model may word it anew within one turn. */
function identityText({ subject, action, params, model, ...basis }: DecisionInputs): string {
  const { promptTemplateSha256, retrievalSnapshotId, policyVersion } = basis;
  const about = [subject.type, subject.id, action, params, model.id, model.version];
  return canonicalJson([...about, promptTemplateSha256, retrievalSnapshotId, policyVersion]);
}

function identityOf<A extends object>(args: A, names: readonly (keyof A & string)[]): JsonObject {
  const identity: JsonObject = {};
  for (const name of names) {
    const value: unknown = args[name];
    if (!isJson(value))
      throw new TypeError(`The argument "${name}" identifies the effect, and it is missing or not JSON.`);
    identity[name] = value;
  }
  return identity;
}

function isJson(value: unknown): value is JsonValue {
  try {
    canonicalJson(value as JsonValue);
    return true;
  } catch {
    return false;
  }
}
