import { TENANT_ROLES, type TenantRole } from '#access';
import { TENANT_SLUG } from '#key';
import { Name, OneOf, Text, Time } from '../fields/index.js';

export class NewTenantRequest {
  @Name({
    description: 'The slug of the tenant: part of every content key.',
    example: 'acme',
    pattern: TENANT_SLUG,
    form: '1–20 lower-case letters, digits and inner hyphens',
    max: 20,
  })
  tenant: string;
}

export class NewCredentialRequest {
  @OneOf({ description: 'What the credential may do.', example: 'auditor', values: TENANT_ROLES })
  role: TenantRole;

  @Text({ description: 'What it is for; shown in the list.', example: 'external audit 2026' })
  name: string;

  @Time({
    description: 'Until when it is good. Without it, until it is revoked.',
    example: '2027-01-31T00:00:00Z',
    optional: true,
  })
  expiresAt?: string;
}
