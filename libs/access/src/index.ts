export { AccessModule } from './access.module.js';
export { Credential, Tenant } from './access.entities.js';
export { Authenticator } from './authenticator.js';
export { ROLES, TENANT_ROLES, type Caller, type Role, type TenantRole } from './caller.js';
export { Credentials, listTenants, type CredentialView, type NewCredential, type TenantTokens } from './credentials.js';
