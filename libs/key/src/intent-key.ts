import { canonicalJson, sha256 } from './canonical.js';

/**
 * The identity of an intent that is known by a request's name rather than by its content: SHA-256 over the RFC 8785 form of
 * the four members, as 64 lower-case hex digits. JSON quotes its strings, so no separator rule is needed, and nothing is
 * trimmed or normalised.
 *
 * @throws TypeError if a member is no well-formed string
 */
export function intentKey(intent: { tenant: string; op: string; target: string; req: string }): string {
  const { tenant, op, target, req } = intent;
  return sha256(canonicalJson({ tenant, op, target, req })).toString('hex');
}
