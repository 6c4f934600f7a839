export const ROLES = ['operator', 'admin', 'orchestrator', 'auditor'] as const;
export type Role = (typeof ROLES)[number];

/** The roles that a tenant's admin may hand out. */
export const TENANT_ROLES = ['admin', 'orchestrator', 'auditor'] as const;
export type TenantRole = (typeof TENANT_ROLES)[number];

/** Who is calling, as the credential says and nothing else. The operator's tenant is `*`. */
export interface Caller {
  readonly credentialId: string;
  readonly tenant: string;
  readonly role: Role;
}
