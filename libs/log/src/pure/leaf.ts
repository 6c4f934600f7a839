import { canonicalJson, type JsonObject, type JsonValue, parseStrictJson, sha256, StrictJsonError } from '#key';
import { MAX_ENTRY_BYTES } from './entry-bundle.js';
import { LogError } from './log-error.js';

/**
 * What the log covers of a ledger entry. The payloads are in it as salted digests only, so that they can be erased one day
 * without breaking a proof, and cannot be guessed from a leaf meanwhile.
 */
export interface Leaf {
  readonly tenant: string;
  readonly ledgerEntryId: string;
  readonly decisionId: string;
  readonly key: string;
  readonly keySource: string;
  readonly contentKey: string;
  /** Hex, as all hashes here. */
  readonly fingerprint: string;
  readonly action: string;
  readonly actionVersion: number;
  readonly subject: { readonly type: string; readonly id: string };
  readonly reportingPeriod: string | null;
  readonly outcome: string;
  readonly reason: string | null;
  readonly model: { readonly id: string; readonly version: string };
  readonly promptTemplateSha256: string;
  readonly retrievalSnapshotId: string;
  readonly policyVersion: string;
  readonly effectId: string | null;
  readonly externalRef: string | null;
  /** The id of the credential. */
  readonly recordedBy: string;
  /** RFC 3339 in UTC with microseconds, as the database recorded it. */
  readonly recordedAt: string;
  readonly paramsDigest: string | null;
  readonly noteDigest: string | null;
  readonly resultDigest: string | null;
}

/** The first and so far only version of what a leaf has. Leaves of it must be read for ever. */
const VERSION = 1;

const SALT_BYTES = 32;

type Shape = (value: JsonValue | undefined) => boolean;

const text: Shape = (value) => typeof value === 'string' && value !== '';
const matches =
  (pattern: RegExp): Shape =>
  (value) =>
    typeof value === 'string' && pattern.test(value);
const optional =
  (shape: Shape): Shape =>
  (value) =>
    value === null || shape(value);
const members =
  (shapes: Readonly<Record<string, Shape>>): Shape =>
  (value) =>
    isObject(value) &&
    Object.keys(value).length === Object.keys(shapes).length &&
    Object.entries(shapes).every(([name, shape]) => Object.hasOwn(value, name) && shape(value[name]));

const sha256Hex = matches(/^[0-9a-f]{64}$/);
const uuid = matches(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);

const LEAF_SHAPES: Readonly<Record<keyof Leaf, Shape>> = {
  tenant: text,
  ledgerEntryId: uuid,
  decisionId: uuid,
  key: text,
  keySource: matches(/^(?:content|client)$/),
  contentKey: text,
  fingerprint: sha256Hex,
  action: text,
  actionVersion: (value) => Number.isSafeInteger(value),
  subject: members({ type: text, id: text }),
  reportingPeriod: optional(text),
  outcome: matches(/^(?:applied|refused)$/),
  reason: optional(text),
  model: members({ id: text, version: text }),
  promptTemplateSha256: sha256Hex,
  retrievalSnapshotId: text,
  policyVersion: text,
  effectId: optional(uuid),
  externalRef: optional(text),
  recordedBy: text,
  recordedAt: matches(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
  paramsDigest: optional(sha256Hex),
  noteDigest: optional(sha256Hex),
  resultDigest: optional(sha256Hex),
};

const isLeafObject = members({ v: (value) => value === VERSION, ...LEAF_SHAPES });

/** The names of a leaf's members, `v` apart. */
export const LEAF_MEMBERS: readonly string[] = Object.keys(LEAF_SHAPES);

/**
 * The bytes that are hashed, and kept as they are: the RFC 8785 form of the members with `"v": 1`.
 *
 * @throws LogError if a member is missing, is not what it should be, or is none of a leaf's
 */
export function leafBytes(leaf: Leaf): Buffer {
  const object: JsonObject = { ...leaf, subject: { ...leaf.subject }, model: { ...leaf.model }, v: VERSION };
  if (!isLeafObject(object)) throw new LogError(`These are not the members of a leaf.${wrongMember(object)}`);
  const bytes = Buffer.from(canonicalJson(object));
  if (bytes.length > MAX_ENTRY_BYTES) throw new LogError(`A leaf of ${bytes.length} bytes fits no bundle.`);
  return bytes;
}

/**
 * The members of a leaf, without `v`.
 *
 * @throws LogError if the bytes are not what {@link leafBytes} gives for any members
 */
export function readLeaf(bytes: Uint8Array): Leaf {
  const value = parseLeafJson(bytes);
  if (!isLeaf(value)) throw new LogError(`The leaf has not the members of version 1.${wrongMember(value)}`);
  const { v: _, ...leaf } = value;
  if (!leafBytes(leaf).equals(bytes)) throw new LogError('The leaf is not in its canonical form.');
  return leaf;
}

/**
 * The digest that stands for a payload: SHA-256(salt ‖ RFC 8785 bytes), in hex.
 *
 * @param salt 32 bytes at random, made for this payload alone
 * @param canonical the RFC 8785 form, as it was stored; null if there is no payload, whose digest is null
 */
export function payloadDigest(salt: Uint8Array, canonical: string | null): string | null {
  if (canonical === null) return null;
  if (salt.length !== SALT_BYTES) throw new RangeError(`A salt has 32 bytes, not ${salt.length}.`);
  return sha256(Buffer.concat([salt, Buffer.from(canonical)])).toString('hex');
}

function parseLeafJson(bytes: Uint8Array): JsonValue {
  try {
    return parseStrictJson(bytes);
  } catch (error) {
    if (error instanceof StrictJsonError) throw new LogError(`The leaf is not strict JSON: ${error.message}`);
    throw error;
  }
}

function isLeaf(value: JsonValue): value is JsonObject & Leaf & { v: number } {
  return isLeafObject(value);
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function wrongMember(value: JsonValue): string {
  if (!isObject(value)) return '';
  const shapes = new Map(Object.entries(LEAF_SHAPES));
  const wrong =
    [...shapes].find(([name, shape]) => !shape(value[name]))?.[0] ??
    Object.keys(value).find((name) => name !== 'v' && !shapes.has(name)) ??
    'v';
  return ` Look at "${wrong}".`;
}
