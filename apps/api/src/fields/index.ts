export { bind } from './bind.js';
export {
  Child,
  Id,
  Items,
  Json,
  JsonMap,
  Key,
  Name,
  Names,
  OneOf,
  Sha256Hex,
  Text,
  Time,
  Whole,
  WholeText,
  Yes,
} from './kinds.js';
