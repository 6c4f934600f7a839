/** What the ledger is told by whoever starts it. */
export interface LedgerSettings {
  /** Replaces every action's retention, for trials of expiry. */
  readonly responseRetentionOverrideSeconds: number | null;
  /** How many decisions of one tenant may wait in one process until they are recorded. */
  readonly maxQueuedDecisions: number;
}

export const LEDGER_SETTINGS = Symbol('LedgerSettings');
