/**
 * The one place where the package reaches out of its folder. Its own `package.json` is the scope of its sources, so the
 * repository's `#key` does not resolve in here; the build compiles what is named below into the package.
 */
export {
  canonicalJson,
  checkKey,
  deriveContentKey,
  fingerprint,
  parseStrictJson,
  sha256,
} from '../../key/src/index.js';
export type { DecisionInputs as KeyedInputs, JsonObject, JsonValue } from '../../key/src/index.js';
