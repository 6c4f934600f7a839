export type { Answer, Disposition } from './answer.js';
export { DECISION_FILTERS, type DecisionFilterName, type DecisionFilters } from './decision-filter.js';
export {
  DecisionReader,
  type DecisionListRow,
  type IdempotencyRecordView,
  type ListQuestion,
} from './decision-reader.js';
export { decisionRequest, type Arrival, type DecisionRequest } from './decision-request.js';
export { DISPATCH_CHANNEL, Dispatches, type DispatchState, type Unfinished } from './dispatches.js';
export type { DispatchJob } from './dispatch-job.js';
export { Ledger } from './ledger.js';
export { Leases, type ReportAnswer, type ReportedOutcome } from './leases.js';
export { LedgerEntry } from './ledger-entry.entity.js';
export { LedgerModule } from './ledger.module.js';
export type { Patience } from './patience.js';
