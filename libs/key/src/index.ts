export type { JsonObject, JsonValue } from './json-value.js';
export { parseStrictJson } from './strict-json.js';
export { StrictJsonError } from './strict-scan.js';
export { canonicalJson, sha256 } from './canonical.js';
export { deriveContentKey, fingerprint, TENANT_SLUG } from './content-key.js';
export type { DecisionInputs } from './content-key.js';
export { downstreamDigest, downstreamKeys } from './downstream.js';
export { intentKey } from './intent-key.js';
export { operationKey, operationKeyLengthPrefixed } from './operation-key.js';
