export { bind } from './bind.js';
export { Child, Id, Items, JsonMap, Key, Name, OneOf, Sha256Hex, Text, Time, Whole, WholeText } from './kinds.js';
