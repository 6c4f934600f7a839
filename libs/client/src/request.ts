import { randomBytes } from 'node:crypto';
import { canonicalJson, checkKey, deriveContentKey, fingerprint, type JsonObject, sha256 } from './key.js';

/** What defines a decision. Two decisions are the same if and only if all of this is the same. */
export interface DecisionInputs {
  readonly subject: { readonly type: string; readonly id: string };
  /** An action of the inventory. */
  readonly action: string;
  /** Plain JSON. Amounts and other exact numbers are texts. */
  readonly params: JsonObject;
  readonly model: { readonly id: string; readonly version: string };
  /** 64 lower-case hex digits. */
  readonly promptTemplateSha256: string;
  readonly retrievalSnapshotId: string;
  readonly policyVersion: string;
}

/** What is kept with the attempt and defines nothing. */
export interface Evidence {
  readonly stepId?: string | undefined;
  readonly runId?: string | undefined;
  readonly attempt?: number | undefined;
  readonly toolCallId?: string | undefined;
  readonly traceparent?: string | undefined;
  readonly rationale?: string | undefined;
}

/** A request to register a decision, before anything is sent. */
export interface Registration {
  /** Names it in the store: 64 hex digits of the tenant, the key and the fingerprint. */
  readonly id: string;
  readonly key: string;
  /** The body, in the form of RFC 8785. */
  readonly body: string;
}

/**
 * Puts a request together. `tenantId` is sent along, so that a token of another tenant is refused and records nothing.
 *
 * @param request `key`: the caller's own; absent, the content key is the key
 * @throws TypeError if a part is not plain JSON; InvalidIdempotencyKey if the key can be none
 */
export function registrationOf(request: {
  readonly tenant: string;
  readonly inputs: DecisionInputs;
  readonly key?: string | undefined;
  readonly note?: string | undefined;
  readonly evidence?: Evidence | undefined;
  readonly leaseNonce: string | null;
}): Registration {
  const { tenant, note, evidence, leaseNonce } = request;
  const inputs = inputsOf(tenant, request.inputs);
  const content = deriveContentKey(inputs);
  const key = request.key === undefined ? content.key : checkKey(request.key);
  const print = fingerprint(content.canonical, note ?? null).toString('hex');
  return {
    id: sha256(canonicalJson([tenant, key, print])).toString('hex'),
    key,
    body: canonicalJson({
      inputs,
      ...(note === undefined ? {} : { note }),
      ...(evidence === undefined ? {} : { evidence: present(evidence) }),
      ...(leaseNonce === null ? {} : { leaseNonce }),
    }),
  };
}

/** A secret of one claim, 32 url-safe characters: whoever shows it again was given that lease and did not hear of it. */
export function newLeaseNonce(): string {
  return randomBytes(24).toString('base64url');
}

/** The same request with another lease nonce; everything else keeps its bytes, because they are canonical already. */
export function withLeaseNonce(body: string, leaseNonce: string): string {
  const members: JsonObject = JSON.parse(body);
  return canonicalJson({ ...members, leaseNonce });
}

export function hasLeaseNonce(body: string): boolean {
  const members: JsonObject = JSON.parse(body);
  return 'leaseNonce' in members;
}

/** The key as an RFC 9651 String, in which every key can be written. */
export function keyHeader(key: string): string {
  return `"${key.replace(/["\\]/g, '\\$&')}"`;
}

/** Member by member, so that a member which merely came along neither becomes part of the identity nor is sent. */
function inputsOf(tenantId: string, inputs: DecisionInputs): DecisionInputs & { tenantId: string } & JsonObject {
  return {
    tenantId,
    subject: { type: inputs.subject.type, id: inputs.subject.id },
    action: inputs.action,
    params: inputs.params,
    model: { id: inputs.model.id, version: inputs.model.version },
    promptTemplateSha256: inputs.promptTemplateSha256,
    retrievalSnapshotId: inputs.retrievalSnapshotId,
    policyVersion: inputs.policyVersion,
  };
}

/** The members that have a value, by name: what travels with the request may come from anywhere. */
function present(evidence: Evidence): JsonObject {
  const { stepId, runId, attempt, toolCallId, traceparent, rationale } = evidence;
  const members = { stepId, runId, attempt, toolCallId, traceparent, rationale };
  const kept: JsonObject = {};
  for (const [name, value] of Object.entries(members)) if (value !== undefined) kept[name] = value;
  return kept;
}
