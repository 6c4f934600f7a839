import { Injectable } from '@nestjs/common';
import { Database, enterTenant, OPERATOR_SCOPE, violatedConstraint, type Transaction } from '#database';
import { Problem, validationFailed } from '#problem';
import { Authenticator, type RevokedCredential } from './authenticator.js';
import { TENANT_ROLES, type Caller, type Role, type TenantRole } from './caller.js';
import { isCredentialId, mintToken } from './token.js';

/** A credential as it is listed: never with its secret. Times are RFC 3339. */
export interface CredentialView {
  credentialId: string;
  role: Role;
  name: string;
  createdAt: string;
  expiresAt: string | null;
  lastUsedAt: string | null;
  /** The provider that vouches for the caller, whose name is then the subject; absent where a secret does. */
  issuer?: string;
}

/** A credential as it is handed out, this once, with its token. */
export interface NewCredential {
  credentialId: string;
  role: Role;
  name: string;
  token: string;
  expiresAt: string | null;
}

export type TenantTokens = Record<TenantRole, string>;

/** Tenants and their credentials. */
@Injectable()
export class Credentials {
  constructor(
    private readonly database: Database,
    private readonly authenticator: Authenticator,
  ) {}

  /**
   * Makes a tenant and one credential for each of its roles.
   *
   * @throws Problem `tenant-exists`
   */
  async createTenant(tenant: string): Promise<TenantTokens> {
    try {
      return await this.database.transaction(OPERATOR_SCOPE, async (tx) => {
        await tx.query('INSERT INTO tenant (tenant_id) VALUES ($1)', [tenant]);
        return issueTenantTokens(tx, tenant);
      });
    } catch (error) {
      if (violatedConstraint(error) === 'tenant_pkey')
        throw new Problem('tenant-exists', `The tenant ${tenant} exists already.`);
      throw error;
    }
  }

  /** @param expiresAt RFC 3339; @throws Problem `validation-failed` if it is not in the future */
  async issue(caller: Caller, role: TenantRole, name: string, expiresAt: string | null): Promise<NewCredential> {
    return this.database.transaction(caller.tenant, (tx) => insertCredential(tx, caller.tenant, role, name, expiresAt));
  }

  /** The credentials of the tenant that have not been revoked, oldest first. */
  async list(caller: Caller): Promise<CredentialView[]> {
    const rows = await this.database.transaction(caller.tenant, (tx) =>
      tx.query<(CredentialView & { issuer: string | null })[]>(
        `SELECT credential_id AS "credentialId", role, name, rfc3339(created_at) AS "createdAt",
                rfc3339(expires_at) AS "expiresAt", rfc3339(last_used_at) AS "lastUsedAt",
                issuer
           FROM credential
          WHERE tenant_id = $1 AND revoked_at IS NULL
          ORDER BY created_at, credential_id`,
        [caller.tenant],
      ),
    );
    return rows.map(({ issuer, ...row }) => (issuer === null ? row : { ...row, issuer }));
  }

  /**
   * Revokes a credential; if a provider vouches for its caller, then whatever role the provider gives the subject.
   *
   * @throws Problem `not-found` if the tenant has no such credential, or has revoked it already
   */
  async revoke(caller: Caller, credentialId: string): Promise<void> {
    if (!isCredentialId(credentialId)) throw new Problem('not-found', 'The tenant has no such credential.');
    const [revoked] = await this.database.transaction(caller.tenant, (tx) =>
      tx.query<[RevokedCredential[], number]>(
        `UPDATE credential SET revoked_at = now()
          WHERE tenant_id = $1 AND revoked_at IS NULL
            AND (credential_id = $2
                 OR (issuer, subject) = (SELECT issuer, subject FROM credential
                                          WHERE tenant_id = $1 AND credential_id = $2 AND revoked_at IS NULL))
        RETURNING credential_id AS "credentialId", issuer, subject`,
        [caller.tenant, credentialId],
      ),
    );
    if (revoked.length === 0) throw new Problem('not-found', 'The tenant has no such credential.');
    for (const credential of revoked) this.authenticator.forget(caller.tenant, credential);
  }

  /** A new operator's token. Only the command line and the first start of the embedded database call this. */
  async createOperator(name: string): Promise<string> {
    const { token } = await this.database.transaction(OPERATOR_SCOPE, (tx) =>
      insertCredential(tx, OPERATOR_SCOPE, 'operator', name, null),
    );
    return token;
  }

  /** Makes a tenant unless it exists, and new credentials for it either way. */
  async renewTenant(tenant: string): Promise<TenantTokens> {
    return this.database.transaction(OPERATOR_SCOPE, async (tx) => {
      await tx.query('INSERT INTO tenant (tenant_id) VALUES ($1) ON CONFLICT ON CONSTRAINT tenant_pkey DO NOTHING', [
        tenant,
      ]);
      return issueTenantTokens(tx, tenant);
    });
  }
}

/** Every tenant, for the worker. */
export async function listTenants(database: Database): Promise<string[]> {
  const rows = await database.transaction(OPERATOR_SCOPE, (tx) =>
    tx.query<{ tenant_id: string }[]>('SELECT tenant_id FROM tenant ORDER BY tenant_id'),
  );
  return rows.map(({ tenant_id }) => tenant_id);
}

async function issueTenantTokens(tx: Transaction, tenant: string): Promise<TenantTokens> {
  await enterTenant(tx, tenant);
  const tokens: TenantTokens = { admin: '', orchestrator: '', auditor: '' };
  for (const role of TENANT_ROLES) {
    const { token } = await insertCredential(tx, tenant, role, `first ${role}`, null);
    tokens[role] = token;
  }
  return tokens;
}

async function insertCredential(
  tx: Transaction,
  tenant: string,
  role: Role,
  name: string,
  expiresAt: string | null,
): Promise<NewCredential> {
  const { credentialId, token, secretSha256 } = mintToken();
  const [row] = await tx.query<{ expiresAt: string | null; inPast: boolean | null }[]>(
    `INSERT INTO credential (tenant_id, credential_id, role, name, secret_sha256, expires_at) VALUES ($1, $2, $3, $4, $5, $6)
     RETURNING rfc3339(expires_at) AS "expiresAt", expires_at <= now() AS "inPast"`,
    [tenant, credentialId, role, name, secretSha256, expiresAt],
  );
  if (row?.inPast) throw validationFailed([{ pointer: '/expiresAt', detail: 'must be in the future' }]);
  return { credentialId, role, name, token, expiresAt: row?.expiresAt ?? null };
}
