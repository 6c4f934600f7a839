export { ActionVersion } from './action-version.entity.js';
export {
  ACTION_NAME,
  ACTION_NAME_LENGTH,
  EXECUTIONS,
  ON_EXPIRED_LEASES,
  SAME_CONTENTS,
  UNIQUENESSES,
} from './action.js';
export type { Action, ActionRules, Execution, OnExpiredLease, SameContent, Uniqueness } from './action.js';
export {
  dispatchFlaws,
  HEADER_NAME,
  HEADER_NAME_LENGTH,
  KEY_FORMS,
  secretVariable,
  type DispatchRules,
  type KeyForm,
} from './dispatch-rules.js';
export { ActionsModule } from './actions.module.js';
export { Inventory, type MadeAction } from './inventory.js';
export { isReportingPeriod } from './reporting-period.js';
