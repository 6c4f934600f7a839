import { LRUCache } from 'lru-cache';
import { BriefCache, type BriefValue, type Database } from '#database';
import type { Caller, Role } from './caller.js';
import { Identities } from './identities.js';
import { invalidToken, looksLikeJwt, type IdentityProvider } from './identity-provider.js';
import { parseToken, secretMatches } from './token.js';

/** `lastUsedAt` may lag by a minute, so one write in half of it is enough. */
const TOUCH_MS = 30_000;
const TOUCHED_SIZE = 10_000;

interface KnownCredential {
  readonly caller: Caller;
  readonly secretSha256: Buffer;
}

interface CredentialRow {
  tenant_id: string;
  role: Role;
  secret_sha256: Buffer;
  live: boolean;
  expires_in_ms: number | null;
}

/** A credential that has just been revoked: of a secret, or of whom a provider vouches for. */
export interface RevokedCredential {
  readonly credentialId: string;
  readonly issuer: string | null;
  readonly subject: string | null;
}

/** Tells who is calling from a bearer token. */
export class Authenticator {
  private readonly known = new BriefCache<KnownCredential>((credentialId) => this.read(credentialId));
  private readonly touched = new LRUCache<string, true>({ max: TOUCHED_SIZE, ttl: TOUCH_MS });

  private readonly identities: Identities;

  /** @param provider whose JWTs are taken too; null takes none */
  constructor(
    private readonly database: Database,
    private readonly provider: IdentityProvider | null,
  ) {
    this.identities = new Identities(database);
  }

  /**
   * The caller, or null if the token is not that of a live credential.
   *
   * @throws Problem `unauthenticated` that says what is wrong with a JWT, `unavailable` if the provider's keys cannot be had
   */
  async authenticate(bearerToken: string): Promise<Caller | null> {
    const caller =
      this.provider !== null && looksLikeJwt(bearerToken)
        ? await this.callerByJwt(this.provider, bearerToken)
        : await this.callerBySecret(bearerToken);
    if (caller !== null) this.touch(caller);
    return caller;
  }

  /** Refuses a credential from the next request on. */
  forget(tenant: string, { credentialId, issuer, subject }: RevokedCredential): void {
    this.known.forget(credentialId);
    if (issuer !== null && subject !== null) this.identities.forget(tenant, issuer, subject);
  }

  private async callerBySecret(bearerToken: string): Promise<Caller | null> {
    const token = parseToken(bearerToken);
    if (token === null) return null;
    const credential = await this.known.get(token.credentialId);
    return credential !== null && secretMatches(token.secret, credential.secretSha256) ? credential.caller : null;
  }

  private async callerByJwt(provider: IdentityProvider, jwt: string): Promise<Caller> {
    const caller = await this.identities.callerOf(await provider.identify(jwt));
    if (caller === null) throw invalidToken('The tenant is not there, or has revoked the subject.');
    return caller;
  }

  private async read(credentialId: string): Promise<BriefValue<KnownCredential> | null> {
    const [row] = await this.database.statement<CredentialRow>('SELECT * FROM find_credential($1)', [credentialId]);
    if (row === undefined || !row.live) return null;
    const caller = { credentialId, tenant: row.tenant_id, role: row.role };
    return { value: { caller, secretSha256: row.secret_sha256 }, ttlMs: row.expires_in_ms ?? undefined };
  }

  /** Notes the use in the background. A note that is lost is made by the next use. */
  private touch({ credentialId, tenant }: Caller): void {
    if (this.touched.has(credentialId)) return;
    this.touched.set(credentialId, true);
    this.database
      .transaction(tenant, (tx) =>
        tx.query('UPDATE credential SET last_used_at = now() WHERE tenant_id = $1 AND credential_id = $2', [
          tenant,
          credentialId,
        ]),
      )
      .catch(() => this.touched.delete(credentialId));
  }
}
