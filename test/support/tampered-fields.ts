import { canonicalJson, parseStrictJson, type JsonObject, type JsonValue } from '#key';
import type { Row } from './tampering.js';

/** A change to one column: what it is set to, in SQL; which check must fail; and which entries have something to change. */
export interface ColumnChange {
  readonly to: string;
  readonly check: 'rows' | 'digests' | 'identities' | 'inclusion';
  readonly of?: (row: Row) => boolean;
}

const isApplied = ({ outcome }: Row): boolean => outcome.status === 'applied';
const isRefused = (row: Row): boolean => !isApplied(row);
const isInline = ({ action }: Row): boolean => action !== 'call.out';
const isCall = ({ action, externalRef }: Row): boolean => action === 'call.out' && externalRef !== null;
const hasNote = ({ note, externalRef }: Row): boolean => note !== null && externalRef === null;
const hasPeriod = ({ reportingPeriod }: Row): boolean => reportingPeriod !== null;

const inRows = (to: string, of: (row: Row) => boolean = isInline): ColumnChange => ({ to, check: 'rows', of });
const OTHER_ID = 'gen_random_uuid()';
const OTHER_HASH = `sha256('forged')`;

/** Every column of an entry that its leaf covers. */
export const OF_ENTRY: Readonly<Record<string, ColumnChange>> = {
  tenant_id: inRows(`'other'`),
  ledger_entry_id: inRows(OTHER_ID),
  idem_key: inRows(`'forged'`),
  decision_id: inRows(OTHER_ID),
  outcome: inRows(`'refused'`, (row) => isInline(row) && isApplied(row)),
  reason: inRows(`'forged'`, (row) => isInline(row) && isRefused(row)),
  effect_id: inRows(OTHER_ID, (row) => isInline(row) && isApplied(row)),
  external_ref: inRows(`'forged'`, isCall),
  recorded_at: inRows(`recorded_at + interval '1 microsecond'`),
  credential_id: { to: `'forged'`, check: 'inclusion', of: isCall },
  result: { to: `'{"paid":"9999.00"}'`, check: 'digests', of: isCall },
  params_salt: { to: OTHER_HASH, check: 'digests', of: isInline },
  note_salt: { to: OTHER_HASH, check: 'digests', of: hasNote },
  result_salt: { to: OTHER_HASH, check: 'digests', of: isCall },
};

/** What an entry has beside: who won in its stead, the words of a refusal, and how long the response is kept. */
export const NOT_COVERED_OF_ENTRY = ['winner_decision_id', 'refusal', 'response_expires_at'];

/** Every column of a decision that the leaf of its entry covers. */
export const OF_DECISION: Readonly<Record<string, ColumnChange>> = {
  tenant_id: inRows(`'other'`),
  decision_id: inRows(OTHER_ID),
  idem_key: inRows(`'forged'`),
  key_source: inRows(`CASE key_source WHEN 'client' THEN 'content' ELSE 'client' END`),
  content_hash: inRows(`substring(${OTHER_HASH} FOR 20)`),
  fingerprint: inRows(OTHER_HASH),
  action: inRows(`'forged'`),
  action_version: inRows('action_version + 1'),
  subject_type: inRows(`'forged'`),
  subject_id: inRows(`'forged'`),
  reporting_period: inRows(`'2026-Q3'`, hasPeriod),
  model_id: inRows(`'forged'`),
  model_version: inRows(`'forged'`),
  prompt_template_sha256: inRows(OTHER_HASH),
  retrieval_snapshot_id: inRows(`'forged'`),
  policy_version: inRows(`'forged'`),
  inputs: { to: `replace(inputs, '"n":', '"n":1')`, check: 'digests', of: isInline },
  note: { to: `'forged'`, check: 'identities', of: hasNote },
};

/** What a decision has beside: how its content is kept unique, who sent it and when, and a key that follows from the inputs. */
export const NOT_COVERED_OF_DECISION = ['content_once', 'credential_id', 'received_at', 'downstream_uuid4'];

const OTHERS: Readonly<Record<string, string>> = {
  applied: 'refused',
  refused: 'applied',
  client: 'content',
  content: 'client',
};

/** A value of the same shape, so that the leaf stays one where it can. */
function another(value: JsonValue): JsonValue {
  if (typeof value === 'number') return value + 1;
  if (typeof value !== 'string') return 'forged';
  return OTHERS[value] ?? value.replace(/[0-9a-f](?=[^0-9a-f]*$)/, (digit) => (digit === '0' ? '1' : '0'));
}

/** The bytes of a leaf with one member changed, for each of its members; a member of `subject` or `model` alone as well. */
export function forgeries(leaf: string): { member: string; forged: string }[] {
  const value = parseStrictJson(Buffer.from(leaf)) as JsonObject; // eslint-disable-line -- a leaf is an object
  return Object.entries(value).flatMap(([member, was]) => {
    const changes: [string, JsonValue][] =
      typeof was === 'object' && was !== null && !Array.isArray(was)
        ? Object.entries(was).map(([name, inner]) => [`${member}.${name}`, { ...was, [name]: another(inner) }])
        : [[member, another(was)]];
    return changes.map(([name, to]) => ({ member: name, forged: canonicalJson({ ...value, [member]: to }) }));
  });
}
