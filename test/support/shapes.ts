import type { TestDatabase } from './database.js';
import { exampleTables } from './schema.js';

/**
 * In which kind of decision a row belongs: how its action is carried out, and how it stands. `d` is the decision, `l` its
 * entry, `i` the record of its key.
 */
const KIND = `concat_ws(', ', v.rules::json->>'execution', v.rules::json->>'uniqueness', v.rules::json->>'sameContent',
  CASE WHEN l.winner_decision_id IS NOT NULL THEN 'lost to a rival' ELSE coalesce(l.outcome, i.status) END)`;

const OF_DECISION = `FROM decision_record d
  JOIN action_version v ON v.tenant_id = d.tenant_id AND v.action = d.action AND v.version = d.action_version
  LEFT JOIN ledger_entry l ON l.tenant_id = d.tenant_id AND l.decision_id = d.decision_id
  LEFT JOIN idempotency_record i ON i.tenant_id = d.tenant_id AND i.idem_key = d.idem_key`;

/** A note is the request's to send or not; a nonce is the caller's. */
const shape = (row: string): string =>
  `(SELECT string_agg(key, ' ' ORDER BY key) FROM jsonb_each(to_jsonb(${row})) WHERE value <> 'null' AND key NOT IN ('note', 'lease_nonce_sha256'))`;

/** The members of an answer in their order, and what it is called if it is a problem. */
const answer = (text: string): string =>
  `(SELECT 'answer ' || string_agg(key || CASE key WHEN 'title' THEN ' ' || (value #>> '{}') ELSE '' END, ' ') FROM json_each(${text}::json))`;

const TABLES: Readonly<Record<string, { of: string; row: string; more: string }>> = {
  effect: {
    of: `${OF_DECISION} JOIN effect e ON e.tenant_id = d.tenant_id AND e.decision_id = d.decision_id`,
    row: 'e',
    more: `CASE WHEN e.place = '' THEN 'of the subject' END`,
  },
  ledger_entry: {
    of: OF_DECISION,
    row: 'l',
    more: `CASE l.credential_id WHEN 'worker' THEN 'by the worker' END, ${answer('l.refusal')}`,
  },
  content_hold: {
    of: `${OF_DECISION} JOIN content_hold c ON c.tenant_id = d.tenant_id AND c.decision_id = d.decision_id`,
    row: 'c',
    more: 'NULL',
  },
  bound_key: {
    of: `${OF_DECISION} JOIN bound_key b ON b.tenant_id = d.tenant_id AND b.decision_id = d.decision_id`,
    row: 'b',
    more: 'NULL',
  },
  idempotency_record: {
    of: `${OF_DECISION} JOIN idempotency_record r ON r.tenant_id = d.tenant_id AND r.decision_id = d.decision_id`,
    row: 'r',
    more: `concat_ws(', ', r.status, r.response_status, r.lease_number, r.reclaims, r.on_expired_lease, CASE WHEN r.idem_key <> d.idem_key THEN 'bound' END, ${answer('r.response_body')})`,
  },
};

/** An attempt is told by what it met, not by how its decision ended later. */
const ATTEMPTS = `
  SELECT DISTINCT a.tenant_id, concat_ws(', ', 'attempt', v.rules::json->>'execution', a.disposition, a.problem,
         CASE WHEN a.won THEN 'won' END, CASE a.credential_id WHEN 'worker' THEN 'by the worker' END) || ': ' || ${shape('a')} AS shape
    FROM attempt a
    JOIN action_version v ON v.tenant_id = a.tenant_id AND v.action = a.action AND v.version = 1`;

/** Their rows come and go, or are many for one decision. */
const NOT_ONCE = ['attempt', 'bound_key', 'idempotency_record', 'decision_record'];

/** Which tables have something of a decision: all that there are, so that a new one is missed where it is not filled. */
async function presence(database: TestDatabase): Promise<string> {
  const rows = await database.query<{ name: string }>(
    `SELECT table_name AS name FROM information_schema.columns
      WHERE table_schema = 'public' AND column_name = 'decision_id' AND table_name <> ALL ($1) ORDER BY 1`,
    [[...NOT_ONCE, ...exampleTables()]],
  );
  const has = rows.map(
    ({ name }) =>
      `CASE WHEN EXISTS (SELECT FROM ${name} x WHERE x.tenant_id = d.tenant_id AND x.decision_id = d.decision_id) THEN 'has ${name}' END`,
  );
  return `concat_ws(', ', d.content_once::text, ${has.join(', ')})`;
}

/** The kinds of rows that these tenants have, each with the columns that are filled. */
export async function shapesOf(database: TestDatabase, tenants: readonly string[]): Promise<string[]> {
  const tables = { ...TABLES, decision_record: { of: OF_DECISION, row: 'd', more: await presence(database) } };
  const decisions = Object.entries(tables).map(
    ([table, { of, row, more }]) =>
      `SELECT DISTINCT d.tenant_id, concat_ws(', ', '${table}', ${KIND}, ${more}) || ': ' || ${shape(row)} AS shape ${of}`,
  );
  const rows = await database.query<{ shape: string }>(
    `SELECT DISTINCT shape FROM (${[...decisions, ATTEMPTS].join(' UNION ')}) all_shapes
      WHERE tenant_id = ANY ($1) AND shape IS NOT NULL ORDER BY shape`,
    [tenants],
  );
  return rows.map((row) => row.shape);
}
