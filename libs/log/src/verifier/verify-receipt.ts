import { canonicalJson, type JsonObject, type JsonValue } from '#key';
import { type Leaf, LEAF_MEMBERS, leafBytes, readLeaf } from '../pure/leaf.js';
import { LogError } from '../pure/log-error.js';
import { leafHash, verifyInclusion } from '../pure/merkle.js';
import type { VerifierKey } from '../pure/note-key.js';
import { parseReceipt } from '../pure/receipt.js';
import { Check } from './check.js';
import { exportChecks } from './compare-export.js';
import { compareRow } from './exported-row.js';
import { parseObject } from './files.js';
import { openFor } from './head.js';
import { entryName } from './rebuild.js';

export interface ReceiptOptions {
  readonly keys: readonly VerifierKey[];
  /** The ledger entry: the bytes of its leaf, or the answer of `GET /v1/ledger/entries/{ledgerEntryId}`. */
  readonly entry: Buffer | null;
  /** The decision's row of an export, with the payloads; it is compared with the entry if it is given. */
  readonly row: JsonObject | null;
}

/** Checks that the log has an entry, by the receipt for it. */
export function verifyReceipt(text: string, { keys, entry, row }: ReceiptOptions): Check[] {
  const receipt = new Check('receipt');
  const [checkpoint, leaf, inclusion] = [new Check('checkpoint'), new Check('entry'), new Check('inclusion')];
  const { rows, identities, digests } = exportChecks();
  const checks = [receipt, checkpoint, leaf, inclusion, ...(row === null ? [] : [rows, identities, digests])];

  const parts = orFailed(receipt, () => parseReceipt(text));
  if (parts === null) return checks;
  const head = openFor(checkpoint, parts.checkpoint, keys);
  if (entry === null) {
    leaf.notChecked('No entry was given');
    inclusion.notChecked('Without the entry nobody can say what it is that the log has');
    return checks;
  }
  const members = orFailed(leaf, () => readEntry(entry, head?.origin ?? null));
  if (members === null) return checks;
  if (head !== null) {
    const { index, hashes } = parts;
    const { size, root } = head;
    const isIn = verifyInclusion({ index, size, root, hashes, leafHash: leafHash(leafBytes(members)) });
    const where = `at index ${index} of the ${size} entries of ${head.origin}`;
    inclusion.ruledBy(isIn ? [] : [`${entryName(index, members)} is not ${where}`]);
  }
  if (row !== null) compareRow(row, members, entryName(parts.index, members), { rows, identities, digests });
  return checks;
}

function readEntry(entry: Buffer, origin: string | null): Leaf {
  const leaf = leafOf(entry);
  if (origin !== null && !origin.endsWith(`/${leaf.tenant}`))
    throw new LogError(`The entry is of the tenant ${leaf.tenant}, the log of ${origin}.`);
  return leaf;
}

/** The members of a leaf, whatever else is beside them, such as the index and the salts in an answer of the service. */
function leafOf(entry: Buffer): Leaf {
  const value = parseObject(entry);
  const members = LEAF_MEMBERS.flatMap((name): [string, JsonValue][] => {
    const member = value[name];
    return member === undefined ? [] : [[name, member]];
  });
  return readLeaf(Buffer.from(canonicalJson({ ...Object.fromEntries(members), v: value['v'] ?? 1 })));
}

function orFailed<T>(check: Check, parse: () => T): T | null {
  try {
    const parsed = parse();
    check.ok();
    return parsed;
  } catch (error) {
    if (!(error instanceof LogError)) throw error;
    check.failed(error.message);
    return null;
  }
}
