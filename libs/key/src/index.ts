export type { JsonObject, JsonValue } from './json-value.js';
export { parseStrictJson } from './strict-json.js';
export { StrictJsonError } from './strict-scan.js';
export { canonicalJson, sha256 } from './canonical.js';
