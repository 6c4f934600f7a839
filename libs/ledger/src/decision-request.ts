import type { Caller } from '#access';
import { deriveContentKey, fingerprint, type DecisionInputs, type JsonObject } from '#key';
import { Problem } from '#problem';

/** One request to register a decision: what is asked, under which key, and the two hashes that tell requests apart. */
export interface DecisionRequest {
  readonly inputs: DecisionInputs;
  /** RFC 8785 bytes of the inputs. */
  readonly canonicalInputs: string;
  readonly note: string | null;
  /** In neither key nor fingerprint; kept with the attempt. */
  readonly evidence: JsonObject | null;
  /** What the caller will show to get the same lease again, should its answer be lost. In neither key nor fingerprint. */
  readonly leaseNonce: string | null;
  readonly key: string;
  readonly keySource: 'content' | 'client';
  readonly contentKey: string;
  /** SHA-256 over `canonicalInputs`, of which the content key shows the first 40 hex digits. */
  readonly contentSha256: Buffer;
  /** SHA-256 over inputs and note. */
  readonly fingerprint: Buffer;
}

/** The arrival of a request (or of a batch): who sent it, how it is called in logs, when it came in. */
export interface Arrival {
  readonly caller: Caller;
  readonly requestId: string;
  /** `performance.now()` at the first byte that the service saw. */
  readonly startedAt: number;
}

const CONTENT_KEY_PREFIX = 'dk_';

/**
 * Gives a request its key: the caller's, or the hash of its content.
 *
 * @param clientKey the Idempotency-Key as decoded, or null
 * @throws Problem `key-derivation-mismatch` if a key that claims to be the content key is another
 */
export function decisionRequest(
  inputs: DecisionInputs,
  note: string | null,
  evidence: JsonObject | null,
  clientKey: string | null,
  leaseNonce: string | null = null,
): DecisionRequest {
  const { canonical, sha256, key: contentKey } = deriveContentKey(inputs);
  if (clientKey?.startsWith(CONTENT_KEY_PREFIX) && clientKey !== contentKey) {
    throw new Problem(
      'key-derivation-mismatch',
      `A key that begins with ${CONTENT_KEY_PREFIX} is derived from the inputs, and these inputs give another one. Derive it again, or send none.`,
    );
  }
  const isContent = clientKey === null || clientKey === contentKey;
  return {
    inputs,
    canonicalInputs: canonical,
    note,
    evidence,
    leaseNonce,
    key: clientKey ?? contentKey,
    keySource: isContent ? 'content' : 'client',
    contentKey,
    contentSha256: sha256,
    fingerprint: fingerprint(canonical, note),
  };
}
