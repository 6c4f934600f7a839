import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

const TOKEN = /^dlk_([0-9a-f]{20})_([A-Za-z0-9_-]{43})$/;
const CREDENTIAL_ID = /^[0-9a-f]{20}$/;

/** Whether a text can be the id of a credential at all. */
export const isCredentialId = (text: string): boolean => CREDENTIAL_ID.test(text);

/** What a bearer token says: who it is, and the proof. */
export interface Token {
  readonly credentialId: string;
  readonly secret: string;
}

/** Reads `dlk_<credentialId>_<secret>`; null for anything else. */
export function parseToken(text: string): Token | null {
  const [, credentialId, secret] = TOKEN.exec(text) ?? [];
  return credentialId === undefined || secret === undefined ? null : { credentialId, secret };
}

/** A new credential id: 80 random bits. */
export const newCredentialId = (): string => randomBytes(10).toString('hex');

/** A new credential id and its token (a secret of 256 random bits). */
export function mintToken(): { credentialId: string; token: string; secretSha256: Buffer } {
  const credentialId = newCredentialId();
  const secret = randomBytes(32).toString('base64url');
  return { credentialId, token: `dlk_${credentialId}_${secret}`, secretSha256: sha256OfSecret(secret) };
}

/** Whether a secret is the one whose hash was stored, in a time that does not tell how far they agree. */
export function secretMatches(secret: string, secretSha256: Buffer): boolean {
  return timingSafeEqual(sha256OfSecret(secret), secretSha256);
}

function sha256OfSecret(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}
