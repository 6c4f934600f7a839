import type { Transaction } from '#database';
import type { DecisionInputs, JsonObject } from '#key';

/** A decision whose effect is to be applied, as a handler sees it. */
export interface DecidedEffect {
  readonly tenant: string;
  readonly decisionId: string;
  readonly effectId: string;
  /** The key of the intended effect; also what to pass on as a reference. */
  readonly key: string;
  readonly inputs: DecisionInputs;
  readonly note: string | null;
}

/** What came of it: the result to record, or the effect's own reason not to happen. Both are outcomes, kept and replayed. */
export type EffectOutcome =
  | { readonly status: 'applied'; readonly result: JsonObject }
  | { readonly status: 'refused'; readonly reason: string; readonly detail: string };

/**
 * Applies the effect of one action inside the transaction that records the decision.
 *
 * A handler MUST write through `tx` and nothing else: whatever it writes commits with the decision or not at all. It
 * MUST NOT call another system: an action whose effect is elsewhere is `caller` or `dispatched`. A refusal undoes what the
 * handler wrote and is recorded; an exception undoes the decision as well, and the caller may try again.
 */
export interface EffectHandler {
  /** The name of the action that it applies, for every tenant that has it in its inventory. */
  readonly action: string;
  apply(tx: Transaction, effect: DecidedEffect): Promise<EffectOutcome>;
}

/** The effect happened; `result` is recorded and answered. */
export function applied(result: JsonObject): EffectOutcome {
  return { status: 'applied', result };
}

/** The effect must not happen. `reason` is a short code for grouping and filtering, `detail` a sentence for the caller. */
export function refused(reason: string, detail: string): EffectOutcome {
  return { status: 'refused', reason, detail };
}
