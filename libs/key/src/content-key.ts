import { canonicalJson, sha256 } from './canonical.js';
import type { JsonObject } from './json-value.js';

/** A tenant's name: 1–20 characters. It has no underscore, so that a content key can be read in one way only. */
export const TENANT_SLUG = /^[a-z0-9](?:[a-z0-9-]{0,18}[a-z0-9])?$/;

/** So many hex digits of the digest are in a content key: 160 bits, beyond reach of a collision by chance or by search. */
const KEY_HEX_DIGITS = 40;

/** What defines a decision. Two decisions are the same if and only if all of this is the same. */
export interface DecisionInputs {
  /** A {@link TENANT_SLUG}, known from the credential. */
  tenantId: string;
  subject: { type: string; id: string };
  action: string;
  params: JsonObject;
  model: { id: string; version: string };
  /** 64 lower-case hex digits. */
  promptTemplateSha256: string;
  retrievalSnapshotId: string;
  policyVersion: string;
}

/**
 * The identity of a decision by its content.
 *
 * @returns `canonical`: the RFC 8785 form of the inputs, the preimage, to be stored as it is; `sha256`: its digest, 32
 * bytes; `key`: `dk_<tenantId>_` and the first 40 hex digits of the digest, at most 64 characters
 * @throws TypeError if the inputs are not plain JSON (see {@link canonicalJson})
 */
export function deriveContentKey(inputs: DecisionInputs): { canonical: string; sha256: Buffer; key: string } {
  // Member by member, so that nothing which merely travels with the inputs can become part of the identity.
  const canonical = canonicalJson({
    tenantId: inputs.tenantId,
    subject: { type: inputs.subject.type, id: inputs.subject.id },
    action: inputs.action,
    params: inputs.params,
    model: { id: inputs.model.id, version: inputs.model.version },
    promptTemplateSha256: inputs.promptTemplateSha256,
    retrievalSnapshotId: inputs.retrievalSnapshotId,
    policyVersion: inputs.policyVersion,
  });
  const digest = sha256(canonical);
  const key = `dk_${inputs.tenantId}_${digest.toString('hex').slice(0, KEY_HEX_DIGITS)}`;
  return { canonical, sha256: digest, key };
}

/**
 * The fingerprint of a request: SHA-256, 32 bytes, over the RFC 8785 form of `{ "inputs": …, "note": … }`. It tells a retry
 * from a key that is used again for something else.
 *
 * @param canonicalInputs the `canonical` of {@link deriveContentKey}; it is built in as it is, not canonicalised again
 * @param note null if the request has none
 * @throws TypeError if the note has a lone surrogate
 */
export function fingerprint(canonicalInputs: string, note: string | null): Buffer {
  // RFC 8785 is compositional: the form of an object is made of the forms of its members, in the order of their names.
  return sha256(`{"inputs":${canonicalInputs},"note":${canonicalJson(note)}}`);
}
