export { BriefCache, type BriefValue } from './brief-cache.js';
export { Abandoned, Database, enterTenant, OPERATOR_SCOPE, type Transaction } from './database.js';
export { EmbeddedServerError } from './embedded-error.js';
export { classifyFailure, failureDetail, failureProblem, violatedConstraint, type Failure } from './failure.js';
export { listen, type Listener } from './listen.js';
export { migrate, missingMigrations } from './migrations.js';
export { DatabaseError, openDatabase, SERVICE_ROLE, serviceDataSource, type OpenDatabase } from './open-database.js';
export { PROJECT_ROOT } from './project-root.js';
export {
  isSafeFromOthers,
  readSettings,
  SettingError,
  type AllowedHost,
  type IdentityProviderSettings,
  type Settings,
} from './settings.js';
