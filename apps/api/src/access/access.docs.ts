import { Documented } from '../http/index.js';
import { NewCredentialRequest, NewTenantRequest } from './access.dto.js';

const TOKEN = 'dlk_3f9c0a7b1d2e4f5a6b7c_Zk3v0tQm8xB1nC5yD7wE9aF2gH4jK6lM0pR8sT1uVwX';
const CREDENTIAL = { credentialId: '3f9c0a7b1d2e4f5a6b7c', role: 'auditor', name: 'external audit 2026' };

export const CreateTenantDoc = (): MethodDecorator =>
  Documented({
    id: 'createTenant',
    summary: 'Make a tenant',
    description:
      'Makes a tenant and one credential for each of its roles. The tokens are shown this once: only a hash of them is kept.',
    roles: ['operator'],
    request: { type: NewTenantRequest, examples: { 'a tenant': { tenant: 'acme' } } },
    answers: [
      {
        status: 201,
        description: 'The tenant and its first credentials.',
        example: { tenant: 'acme', credentials: { admin: TOKEN, orchestrator: TOKEN, auditor: TOKEN } },
      },
    ],
    problems: [{ code: 'tenant-exists', detail: 'The tenant acme exists already.' }],
  });

export const IssueCredentialDoc = (): MethodDecorator =>
  Documented({
    id: 'issueCredential',
    summary: 'Issue a credential',
    description: 'Issues a credential of the tenant. The token is shown this once: only a hash of it is kept.',
    roles: ['admin'],
    request: {
      type: NewCredentialRequest,
      examples: {
        'for an auditor, until the end of January': {
          role: 'auditor',
          name: CREDENTIAL.name,
          expiresAt: '2027-01-31T00:00:00Z',
        },
      },
    },
    answers: [
      {
        status: 201,
        description: 'The credential with its token.',
        example: { ...CREDENTIAL, token: TOKEN, expiresAt: '2027-01-31T00:00:00.000000Z' },
      },
    ],
  });

export const ListCredentialsDoc = (): MethodDecorator =>
  Documented({
    id: 'listCredentials',
    summary: 'Who may call',
    description:
      'The credentials of the tenant that have not been revoked, without their secrets. `lastUsedAt` may lag by a minute. One with an `issuer` was made when a subject, its `name`, first called with a JWT in that role.',
    roles: ['admin'],
    answers: [
      {
        status: 200,
        description: 'The credentials.',
        example: {
          items: [
            {
              ...CREDENTIAL,
              createdAt: '2026-11-30T17:00:00.000001Z',
              expiresAt: null,
              lastUsedAt: '2026-11-30T17:35:10.000002Z',
            },
            {
              credentialId: '8d1e5b0c9a7f3e2d4c6b',
              role: 'orchestrator',
              name: 'refund-agent',
              createdAt: '2026-11-30T17:10:00.000003Z',
              expiresAt: null,
              lastUsedAt: '2026-11-30T17:34:59.000004Z',
              issuer: 'https://login.example.com/realms/bank',
            },
          ],
        },
      },
    ],
  });

export const RevokeCredentialDoc = (): MethodDecorator =>
  Documented({
    id: 'revokeCredential',
    summary: 'Revoke a credential',
    description:
      'The credential is refused from the next request on by the instance that revoked it, and within a second by every other. If it has an `issuer`, its subject is refused for good, in every role.',
    roles: ['admin'],
    params: [
      {
        name: 'credentialId',
        description: 'The id of the credential, the middle part of its token.',
        example: CREDENTIAL.credentialId,
      },
    ],
    answers: [{ status: 204, description: 'Revoked.' }],
    problems: [{ code: 'not-found', detail: 'The tenant has no such credential.' }],
  });
