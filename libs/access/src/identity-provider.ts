import { Logger } from '@nestjs/common';
import { createRemoteJWKSet, decodeJwt, errors, jwtVerify, type JWTPayload, type JWTVerifyGetKey } from 'jose';
import { isSafeFromOthers, type IdentityProviderSettings } from '#database';
import { TENANT_SLUG } from '#key';
import { Problem } from '#problem';
import { TENANT_ROLES } from './caller.js';
import type { Identity } from './identities.js';

/** Signatures by a key that only the provider has. Never `none`, never HMAC, whose key would be the public one. */
const ALGORITHMS = ['RS', 'PS', 'ES'].flatMap((family) => ['256', '384', '512'].map((size) => family + size));
const PINNED_ALGORITHMS = [...ALGORITHMS, 'EdDSA', 'Ed25519'];

/** RFC 9068 and plain JWTs; a logout token or a security event of the same provider is signed by the same keys. */
const TYPES = /^(application\/)?(at\+)?jwt$/i;

/** How far the provider's clock may be from ours. */
const CLOCK_TOLERANCE_SECONDS = 5;

const PROVIDER_TIMEOUT_MS = 5_000;
/** A key that is withdrawn is refused after this time at the latest. */
const KEYS_MAX_AGE_MS = 10 * 60_000;
/** A token that names an unknown key has the keys fetched anew, but no flood of such tokens floods the provider. */
const KEYS_COOLDOWN_MS = 5_000;

const JWT = /^[\w-]+\.[\w-]+\.[\w-]*$/;

/** OpenID Connect Core, section 2, has at most 255 characters. PostgreSQL keeps neither U+0000 nor half a character. */
const SUBJECT = /^[^\p{Cc}\p{Cs}]{1,255}$/u;

/** Failures of a look for the key that are the token's, not the provider's. */
const TOKENS_FAULT = new Set(['ERR_JWKS_NO_MATCHING_KEY', 'ERR_JWKS_MULTIPLE_MATCHING_KEYS', 'ERR_JOSE_NOT_SUPPORTED']);

const REASONS: Readonly<Record<string, string>> = {
  ERR_JOSE_ALG_NOT_ALLOWED: 'The token is not signed with an algorithm that is taken here.',
  ERR_JWKS_NO_MATCHING_KEY: 'The token names no key of its issuer.',
  ERR_JWKS_MULTIPLE_MATCHING_KEYS: 'The token does not say which key of its issuer signed it.',
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: 'The signature of the token is wrong.',
  ERR_JWT_EXPIRED: 'The token has expired.',
};

/** Whether a bearer token has the shape of a signed JWT (RFC 7515, section 7.1). */
export const looksLikeJwt = (bearerToken: string): boolean => JWT.test(bearerToken);

/** `401` as RFC 6750, section 3.1, has it. @param reason a sentence without quotes and backslashes */
export function invalidToken(reason: string): Problem {
  return new Problem('unauthenticated', reason, {
    headers: { 'www-authenticate': `Bearer error="invalid_token", error_description="${reason}"` },
  });
}

/** An OpenID provider: tells from its JWTs who is calling. Its keys are fetched when they are first needed, and kept. */
export class IdentityProvider {
  private readonly logger = new Logger(IdentityProvider.name);
  private keySet: Promise<JWTVerifyGetKey> | null = null;
  private readonly told = new WeakSet();

  constructor(private readonly settings: IdentityProviderSettings) {}

  /** @throws Problem `unauthenticated`, or `unavailable` if the token cannot be judged without keys that cannot be had */
  async identify(jwt: string): Promise<Identity> {
    const { issuer, tenantClaim, roleClaim } = this.settings;
    const { sub: subject, [tenantClaim]: tenant, [roleClaim]: role } = await this.verify(jwt);
    if (typeof subject !== 'string' || !SUBJECT.test(subject))
      throw invalidToken('The claim sub is not 1 to 255 printable characters.');
    if (typeof tenant !== 'string' || !TENANT_SLUG.test(tenant))
      throw invalidToken(`The claim ${tenantClaim} does not name a tenant.`);
    const named = TENANT_ROLES.filter((one) => (Array.isArray(role) ? role.includes(one) : role === one));
    const [only] = named;
    // Two roles are refused rather than joined or ranked: whoever gives them has to say which one is meant.
    if (only === undefined || named.length > 1)
      throw invalidToken(`The claim ${roleClaim} does not name exactly one of ${TENANT_ROLES.join(', ')}.`);
    return { tenant, issuer, subject, role: only };
  }

  private async verify(jwt: string): Promise<JWTPayload> {
    const { issuer, audience } = this.settings;
    try {
      // What another issuer made is refused before anybody is asked for keys.
      if (decodeJwt(jwt).iss !== issuer) throw invalidToken('The token is of another issuer.');
      const { payload, protectedHeader } = await jwtVerify(jwt, this.keyFor, {
        issuer,
        audience,
        algorithms: PINNED_ALGORITHMS,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        requiredClaims: ['exp', 'sub'],
      });
      if (protectedHeader.typ !== undefined && !TYPES.test(protectedHeader.typ))
        throw invalidToken('The token is of a type that is not for calling with.');
      return payload;
    } catch (error) {
      throw error instanceof Problem ? error : invalidToken(reasonOf(error));
    }
  }

  private readonly keyFor: JWTVerifyGetKey = async (header, token) => {
    try {
      this.keySet ??= this.findKeySet();
      const find = await this.keySet;
      return await find(header, token);
    } catch (error) {
      if (error instanceof errors.JOSEError && TOKENS_FAULT.has(error.code)) throw error;
      this.tell(error);
      throw new Problem(
        'unavailable',
        'The keys of the identity provider cannot be had at the moment, so the token cannot be judged. Send the same request again with the same key.',
        { headers: { 'retry-after': '1' } },
      );
    }
  };

  /** The address of the keys is asked for until it is known, and then kept for the life of the process. */
  private async findKeySet(): Promise<JWTVerifyGetKey> {
    try {
      return createRemoteJWKSet(await discoverKeys(this.settings.issuer), {
        timeoutDuration: PROVIDER_TIMEOUT_MS,
        cacheMaxAge: KEYS_MAX_AGE_MS,
        cooldownDuration: KEYS_COOLDOWN_MS,
      });
    } catch (error) {
      this.keySet = null;
      throw error;
    }
  }

  /** One line for a failure, however many requests were waiting for the same answer. */
  private tell(error: unknown): void {
    if (!(error instanceof Error) || this.told.has(error)) return;
    this.told.add(error);
    const why = error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message;
    this.logger.warn(`The keys of the identity provider ${this.settings.issuer} cannot be had: ${why}`);
  }
}

/** OpenID Connect Discovery 1.0, section 4: where the issuer publishes its keys. */
async function discoverKeys(issuer: string): Promise<URL> {
  const address = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const signal = AbortSignal.timeout(PROVIDER_TIMEOUT_MS);
  const response = await fetch(address, { redirect: 'error', signal, headers: { accept: 'application/json' } });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`${address} answered ${response.status}`);
  }
  const metadata: unknown = await response.json();
  if (typeof metadata !== 'object' || metadata === null || !('issuer' in metadata) || metadata.issuer !== issuer)
    throw new Error(`${address} is not of the issuer that OIDC_ISSUER names`);
  const keys = 'jwks_uri' in metadata && typeof metadata.jwks_uri === 'string' ? metadata.jwks_uri : '';
  const isSafe = URL.canParse(keys) && isSafeFromOthers(new URL(keys));
  // An issuer beyond this machine has no business pointing into it.
  if (!isSafe || (issuer.startsWith('https:') && !keys.startsWith('https:')))
    throw new Error(`${address} names no jwks_uri with https`);
  return new URL(keys);
}

function reasonOf(error: unknown): string {
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === 'nbf' && error.reason === 'check_failed') return 'The token is not valid yet.';
    return `The claim ${error.claim} of the token is missing or wrong.`;
  }
  const code = error instanceof errors.JOSEError ? error.code : '';
  return REASONS[code] ?? 'The token is not a signed JWT that can be read.';
}
