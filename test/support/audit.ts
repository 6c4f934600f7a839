import pg from 'pg';

/** Anything that rows can be asked of, behind row-level security. */
export interface Auditable {
  query<Row extends pg.QueryResultRow>(sql: string, parameters?: readonly unknown[]): Promise<Row[]>;
}

/** W, the effects applied under a key, and L, its ledger entries. */
export async function effectsAndEntries(database: Auditable, key: string): Promise<{ W: number; L: number }> {
  const [row] = await database.query<{ W: number; L: number }>(
    `SELECT (SELECT count(*)::int FROM effect e JOIN decision_record d USING (tenant_id, decision_id) WHERE d.idem_key = $1) AS "W",
            (SELECT count(*)::int FROM ledger_entry WHERE idem_key = $1) AS "L"`,
    [key],
  );
  if (row === undefined) throw new Error('There was no count');
  return row;
}

/**
 * What breaks an invariant anywhere in the database, in rows of what and where: a decision without its one entry, an
 * entry without its one effect, an effect without its one business row, a sum that is wrong, a key that nobody finished.
 */
export async function violations(database: Auditable): Promise<unknown[]> {
  return database.query(`
    SELECT 'entries of a decision' AS what, d.idem_key AS place, count(l.*)::text AS found
      FROM decision_record d LEFT JOIN ledger_entry l USING (tenant_id, decision_id)
     GROUP BY d.tenant_id, d.decision_id, d.idem_key HAVING count(l.*) <> 1
    UNION ALL
    SELECT 'decisions of a key', idem_key, count(*)::text
      FROM decision_record GROUP BY tenant_id, idem_key HAVING count(*) <> 1
    UNION ALL
    SELECT 'entries of a key', idem_key, count(*)::text
      FROM ledger_entry GROUP BY tenant_id, idem_key HAVING count(*) <> 1
    UNION ALL
    SELECT 'effects of an entry', l.idem_key, count(e.*)::text
      FROM ledger_entry l LEFT JOIN effect e USING (tenant_id, decision_id)
     GROUP BY l.tenant_id, l.idem_key, l.outcome HAVING count(e.*) <> (l.outcome = 'applied')::int
    UNION ALL
    SELECT 'effects without an entry', e.effect_id::text, '1'
      FROM effect e LEFT JOIN ledger_entry l USING (tenant_id, effect_id) WHERE l.effect_id IS NULL
    UNION ALL
    SELECT 'decisions of content', encode(content_hash, 'hex'), count(*)::text
      FROM decision_record WHERE content_once GROUP BY tenant_id, content_hash HAVING count(*) <> 1
    UNION ALL
    SELECT 'keys not finished', idem_key, status FROM idempotency_record WHERE status <> 'completed'
    UNION ALL
    SELECT 'keys without an outcome', i.idem_key, i.status
      FROM idempotency_record i LEFT JOIN ledger_entry l USING (tenant_id, decision_id) WHERE l.decision_id IS NULL
    UNION ALL
    SELECT 'refunds of an effect', e.effect_id::text, count(r.*)::text
      FROM effect e LEFT JOIN refund r ON r.tenant_id = e.tenant_id AND r.refund_id = e.effect_id
     WHERE e.action = 'refund.create' GROUP BY e.tenant_id, e.effect_id HAVING count(r.*) <> 1
    UNION ALL
    SELECT 'refunds without an effect', r.refund_id::text, '1'
      FROM refund r LEFT JOIN effect e ON e.tenant_id = r.tenant_id AND e.effect_id = r.refund_id WHERE e.effect_id IS NULL
    UNION ALL
    SELECT 'sum of a case', c.subject_id, format('%s, not %s', sum(r.amount), c.refunded)
      FROM refund_case c LEFT JOIN refund r USING (tenant_id, subject_type, subject_id)
     GROUP BY c.tenant_id, c.subject_type, c.subject_id, c.refunded HAVING coalesce(sum(r.amount), 0) <> c.refunded
    UNION ALL
    SELECT 'filings of an effect', e.effect_id::text, count(s.*)::text
      FROM effect e LEFT JOIN sar_filing s ON s.tenant_id = e.tenant_id AND s.filing_id = e.effect_id
     WHERE e.action = 'sar.file' GROUP BY e.tenant_id, e.effect_id HAVING count(s.*) <> 1
    UNION ALL
    SELECT 'filings without an effect', s.filing_id::text, '1'
      FROM sar_filing s LEFT JOIN effect e ON e.tenant_id = s.tenant_id AND e.effect_id = s.filing_id WHERE e.effect_id IS NULL`);
}

/** How many attempts of a key there are of each disposition. */
export async function dispositions(database: Auditable, key: string): Promise<Record<string, number>> {
  const rows = await database.query<{ disposition: string; count: number }>(
    'SELECT disposition, count(*)::int AS count FROM attempt WHERE idem_key = $1 GROUP BY disposition',
    [key],
  );
  return Object.fromEntries(rows.map(({ disposition, count }) => [disposition, count]));
}

/** How many attempts won their key: the ones that made an outcome. */
export async function winners(database: Auditable, key: string): Promise<number> {
  const rows = await database.query('SELECT FROM attempt WHERE idem_key = $1 AND won', [key]);
  return rows.length;
}
