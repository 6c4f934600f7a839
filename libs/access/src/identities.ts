import { BriefCache, type BriefValue, type Database } from '#database';
import { TENANT_ROLES, type Caller, type TenantRole } from './caller.js';
import { newCredentialId } from './token.js';

/** For whom a provider vouches, and as what. */
export interface Identity {
  readonly tenant: string;
  readonly issuer: string;
  readonly subject: string;
  readonly role: TenantRole;
}

/** The members in their order as JSON: one text for one identity. */
type IdentityKey = readonly [tenant: string, issuer: string, subject: string, role: TenantRole];

const keyOf = (...key: IdentityKey): string => JSON.stringify(key);

/**
 * The credentials that stand for identities. The first call of a subject in a role makes one, so that whatever the ledger
 * says was done by a credential leads to a row, and the row to the issuer and the subject.
 */
export class Identities {
  private readonly admitted = new BriefCache<Caller>((key) => this.admit(key));

  constructor(private readonly database: Database) {}

  /** The caller, or null if the tenant is not there or has revoked the subject. */
  async callerOf({ tenant, issuer, subject, role }: Identity): Promise<Caller | null> {
    return this.admitted.get(keyOf(tenant, issuer, subject, role));
  }

  /** Reads a subject anew from the next request on, in every role. */
  forget(tenant: string, issuer: string, subject: string): void {
    for (const role of TENANT_ROLES) this.admitted.forget(keyOf(tenant, issuer, subject, role));
  }

  private async admit(key: string): Promise<BriefValue<Caller> | null> {
    const [tenant, issuer, subject, role]: IdentityKey = JSON.parse(key);
    const [row] = await this.database.statement<{ credentialId: string | null }>(
      'SELECT admit_identity($1, $2, $3, $4, $5) AS "credentialId"',
      [tenant, issuer, subject, role, newCredentialId()],
    );
    const credentialId = row?.credentialId ?? null;
    return credentialId === null ? null : { value: { credentialId, tenant, role } };
  }
}
