export type { Answer, Disposition } from './answer.js';
export { decisionRequest, type Arrival, type DecisionRequest } from './decision-request.js';
export { DISPATCH_CHANNEL, Dispatches, type DispatchState, type Unfinished } from './dispatches.js';
export type { DispatchJob } from './dispatch-job.js';
export { Ledger } from './ledger.js';
export { Leases, type ReportAnswer, type ReportedOutcome } from './leases.js';
export { LedgerEntry } from './ledger-entry.entity.js';
export { LedgerModule } from './ledger.module.js';
export type { Patience } from './patience.js';
export { AbandonedDecision } from './reading/abandoned-decision.entity.js';
export { AccessEnd, AccessRecord } from './reading/access.entities.js';
export { AccessLog, type Access, type AccessFilters, type AccessView } from './reading/access-log.js';
export { AttemptReader, type AttemptView } from './reading/attempt-reader.js';
export { DecisionExport, type ExportRow } from './reading/decision-export.js';
export type { DecisionListRow } from './reading/decision-list-row.js';
export { DecisionReader, type IdempotencyRecordView } from './reading/decision-reader.js';
export { EntryReader, type EntryView } from './reading/entry-reader.js';
export {
  ATTEMPT_FILTERS,
  DECISION_FILTERS,
  type AttemptFilterName,
  type AttemptFilters,
  type DecisionFilterName,
  type DecisionFilters,
} from './reading/filters.js';
export {
  ATTEMPT_GROUP_NAMES,
  DECISION_GROUP_NAMES,
  isGroupName,
  type Counted,
  type GroupName,
} from './reading/groups.js';
export { leavesOf, recordedAt } from './reading/leaf-members.js';
export { ReadingCopy } from './reading/reading-copy.js';
export { RecordedDecision } from './reading/recorded-decision.entity.js';
export { UncopiedEntry } from './reading/uncopied-entry.entity.js';
export type { Page, Paging } from './reading/walk.js';
