export { type Client, type ClientSettings, createClient, type DecideOptions, type Resumed } from './client.js';
export { type DecisionInputs, type Evidence } from './request.js';
export { type DownstreamKeys, type Effect, type Outcome } from './answers.js';
export { type ErrorsMean } from './ending.js';
export { type Run, type RunContext } from './run.js';
export { Applied, NoEffect, Refusal } from './verdict.js';
export {
  type DecisionState,
  DuplicateSubject,
  KeyReused,
  LeaseLost,
  LedgerError,
  OutcomeUnknown,
  Refused,
  Rejected,
  RunFailed,
  SameContent,
  StillInFlight,
  Unavailable,
  type Unrecorded,
  type Winner,
  WrongExecution,
} from './errors.js';
export { DEFAULT_RETRY, type RetryPolicy } from './retry.js';
export { memoryStore, type Store } from './store.js';
export { fileStore } from './file-store.js';
export {
  type DecisionContext,
  ledgered,
  type LedgeredOptions,
  newTurn,
  type Tool,
  type ToolCall,
  Turn,
} from './ledgered.js';
export { type JsonObject, type JsonValue } from './key.js';
