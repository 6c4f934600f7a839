import type { TestDatabase } from './database.js';

/**
 * Has the database note, for each completion that it accepts from a holder, the lease number that was shown and the newest
 * that was given for the key. The function that decides is called as it is; what it read is still locked when this looks.
 */
export async function watchCompletions(database: TestDatabase): Promise<void> {
  await database.query(`
    CREATE TABLE witness (idem_key text NOT NULL, shown integer NOT NULL, newest integer NOT NULL);
    GRANT INSERT ON witness TO decision_ledger_service;
    ALTER FUNCTION complete_lease RENAME TO complete_lease_unwatched;
    CREATE FUNCTION complete_lease(p_tenant text, p_lock_timeout_ms integer, p_rows json, p_applied boolean, p_lease_number integer,
                                   p_token_sha256 bytea, p_conclusion_sha256 bytea)
      RETURNS SETOF decision_answer LANGUAGE plpgsql AS $$
    DECLARE
      a decision_answer;
    BEGIN
      FOR a IN SELECT * FROM complete_lease_unwatched(p_tenant, p_lock_timeout_ms, p_rows, p_applied, p_lease_number,
                                                      p_token_sha256, p_conclusion_sha256) LOOP
        INSERT INTO witness (idem_key, shown, newest)
        SELECT i.idem_key, p_lease_number, i.lease_number FROM idempotency_record i
         WHERE i.tenant_id = p_tenant AND i.decision_id = a.decision_id AND p_lease_number IS NOT NULL
           AND a.disposition NOT IN ('replayed', 'mismatch', 'lease_lost');
        RETURN NEXT a;
      END LOOP;
    END $$`);
}

/** The completions of a key that came from a holder whose lease somebody else had taken over. */
export async function acceptedTooLate(
  database: TestDatabase,
  key: string,
): Promise<{ shown: number; newest: number }[]> {
  return database.query('SELECT shown, newest FROM witness WHERE idem_key = $1 AND shown <> newest', [key]);
}
