import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { BriefCache, Database, type BriefValue } from '#database';
import type { Caller, Role } from './caller.js';
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

/** Tells who is calling from a bearer token. */
@Injectable()
export class Authenticator {
  private readonly known = new BriefCache<KnownCredential>((credentialId) => this.read(credentialId));
  private readonly touched = new LRUCache<string, true>({ max: TOUCHED_SIZE, ttl: TOUCH_MS });

  constructor(private readonly database: Database) {}

  /** The caller, or null if the token is not that of a live credential. */
  async authenticate(bearerToken: string): Promise<Caller | null> {
    const token = parseToken(bearerToken);
    if (token === null) return null;
    const credential = await this.known.get(token.credentialId);
    if (credential === null || !secretMatches(token.secret, credential.secretSha256)) return null;
    this.touch(credential.caller);
    return credential.caller;
  }

  /** Refuses a credential from the next request on. */
  forget(credentialId: string): void {
    this.known.forget(credentialId);
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
