import type { Transaction } from '#database';

/** A member of a leaf in SQL: its value, as JSON functions take it, and its RFC 8785 form as text. */
interface Member {
  readonly value: string;
  readonly form: string;
}

/** Text in which JSON escapes nothing. */
const plain = (value: string): Member => ({ value, form: `'"' || ${value}::text || '"'` });

const number = (value: string): Member => ({ value, form: `${value}::text` });

/** Text as PostgreSQL writes it in JSON is text as RFC 8785 writes it: the same characters are escaped, in the same way. */
const text = (value: string): Member => ({ value, form: `to_json(${value})::text` });

const orNull = ({ value, form }: Member): Member => ({ value, form: `coalesce(${form}, 'null')` });

/** Its names are sorted in its form, as RFC 8785 wants them. They are ASCII, and a sort by UTF-16 units is the default. */
function object(members: Readonly<Record<string, Member>>): Member {
  const entries = Object.entries(members);
  const forms = entries
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, { form }], at) => `'${at === 0 ? '{' : ','}"${name}":' || ${form}`);
  return { value: `json_build_object(${argumentsOf(members)})`, form: `${forms.join(' || ')} || '}'` };
}

/** For `json_build_object`. */
function argumentsOf(members: Readonly<Record<string, Member>>): string {
  return Object.entries(members)
    .map(([name, { value }]) => `'${name}', ${value}`)
    .join(', ');
}

const hex = (bytes: string): string => `encode(${bytes}, 'hex')`;

const base64url = (bytes: string): string => `translate(encode(${bytes}, 'base64'), '+/=', '-_')`;

/** SHA-256 over the salt and the RFC 8785 bytes of a value; NULL where there is none. */
const digest = (salt: string, form: string): Member =>
  orNull(plain(hex(`sha256(${salt} || convert_to(${form}, 'UTF8'))`)));

/** The params as they stand in the canonical inputs: `json` keeps the text of a member as it is. */
const PARAMS = `(d.inputs::json->'params')::text`;

/** Base64url, without a salt for what is not there. */
export const SALTS = `json_build_object('params', ${base64url('l.params_salt')},
  'note', CASE WHEN d.note IS NOT NULL THEN ${base64url('l.note_salt')} END,
  'result', CASE WHEN l.result IS NOT NULL THEN ${base64url('l.result_salt')} END)`;

/**
 * What the log covers of an entry, from `ledger_entry l` and its `decision_record d`. An entry is shown by it too, so that
 * what is shown and what was sealed cannot differ.
 */
const MEMBERS: Readonly<Record<string, Member>> = {
  v: number('1'),
  tenant: plain('l.tenant_id'),
  ledgerEntryId: plain('l.ledger_entry_id'),
  decisionId: plain('l.decision_id'),
  key: text('l.idem_key'),
  keySource: plain('d.key_source'),
  contentKey: plain('content_key(d.tenant_id, d.content_hash)'),
  fingerprint: plain(hex('d.fingerprint')),
  action: plain('d.action'),
  actionVersion: number('d.action_version'),
  subject: object({ type: text('d.subject_type'), id: text('d.subject_id') }),
  reportingPeriod: orNull(plain('d.reporting_period')),
  outcome: plain('l.outcome'),
  reason: orNull(text('l.reason')),
  model: object({ id: text('d.model_id'), version: text('d.model_version') }),
  promptTemplateSha256: plain(hex('d.prompt_template_sha256')),
  retrievalSnapshotId: text('d.retrieval_snapshot_id'),
  policyVersion: text('d.policy_version'),
  effectId: orNull(plain('l.effect_id')),
  externalRef: orNull(text('l.external_ref')),
  recordedBy: text('l.credential_id'),
  recordedAt: plain('rfc3339(l.recorded_at)'),
  paramsDigest: digest('l.params_salt', PARAMS),
  noteDigest: digest('l.note_salt', text('d.note').form),
  resultDigest: digest('l.result_salt', 'l.result'),
};

/** Its members, as arguments of `json_build_object`. */
export const LEAF_MEMBERS = argumentsOf(MEMBERS);

export const DECISION_OF_ENTRY =
  'JOIN decision_record d ON d.decision_id = l.decision_id AND d.tenant_id = l.tenant_id';

/** The leaf of an entry `l` of the tenant `$1`, as soon as a checkpoint covers it. */
export const LEAF_OF_ENTRY = `LEFT JOIN log_leaf g ON g.ledger_entry_id = l.ledger_entry_id AND g.tenant_id = l.tenant_id
     AND g.leaf_index < (SELECT t.signed_size FROM log_tree t WHERE t.tenant_id = $1)`;

/**
 * A query for the leaves of entries of the tenant `$1`: the columns of `entries`, which has a `ledger_entry_id`, and `leaf`,
 * the bytes that are hashed, as text. An entry that is not there is left out. Each is looked up by its index (OFFSET 0 keeps
 * it so), however many there are.
 *
 * The leaf is put together here and not in the process: of a thousand entries that costs a third, and a process that
 * answers requests meanwhile has nothing to do for it. The names of a leaf's members in their order are those of RFC 8785.
 */
export const leavesOf = (entries: string): string => `
  SELECT n.*, ${object(MEMBERS).form} AS leaf FROM ${entries} n
   CROSS JOIN LATERAL (SELECT * FROM ledger_entry l WHERE l.ledger_entry_id = n.ledger_entry_id AND l.tenant_id = $1 OFFSET 0) l
   CROSS JOIN LATERAL (SELECT * FROM decision_record d WHERE d.decision_id = l.decision_id AND d.tenant_id = $1 OFFSET 0) d`;

/** When an entry was recorded, as text with all that the database knows of it; null if there is no such entry. */
export async function recordedAt(tx: Transaction, tenant: string, ledgerEntryId: string): Promise<string | null> {
  const [entry] = await tx.query<{ at: string }[]>(
    'SELECT rfc3339(recorded_at) AS at FROM ledger_entry WHERE ledger_entry_id = $2 AND tenant_id = $1',
    [tenant, ledgerEntryId],
  );
  return entry?.at ?? null;
}
