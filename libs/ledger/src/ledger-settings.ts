/** What the ledger is told by whoever starts it. */
export interface LedgerSettings {
  /** Replaces every action's retention, for trials of expiry. */
  readonly responseRetentionOverrideSeconds: number | null;
}

export const LEDGER_SETTINGS = Symbol('LedgerSettings');
