import pg from 'pg';
import { until } from './rounds.js';
import type { TestDatabase } from './database.js';

/**
 * Where a transaction of the service can be made to stand still: when it holds its key and has written nothing else; in
 * the middle of the refund's handler; and in COMMIT itself, after the last statement.
 */
export type Place = 'claim' | 'handler' | 'commit';

/** A place that transactions do not get past until it is opened. */
export interface Gate {
  /** Comes back when so many transactions stand at a gate. */
  reached(count?: number): Promise<void>;
  open(): Promise<void>;
}

/**
 * Puts triggers into a test's database that wait at shut gates. They sleep and look again rather than wait for a lock:
 * the service bounds its waits for locks, and a slow holder is one that is not waiting for any.
 */
export async function installGates(database: TestDatabase): Promise<void> {
  await database.query(`
    CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      v_gate bigint := hashtextextended(TG_ARGV[0] || ' ' || (to_jsonb(NEW) ->> TG_ARGV[1]), 0);
    BEGIN
      WHILE NOT pg_try_advisory_lock_shared(v_gate) LOOP PERFORM pg_sleep(0.005); END LOOP;
      PERFORM pg_advisory_unlock_shared(v_gate);
      RETURN NEW;
    END $$;
    CREATE TRIGGER gate_claim AFTER INSERT ON idempotency_record FOR EACH ROW EXECUTE FUNCTION wait_at_gate('claim', 'idem_key');
    CREATE TRIGGER gate_handler AFTER INSERT ON refund FOR EACH ROW EXECUTE FUNCTION wait_at_gate('handler', 'subject_id');
    CREATE CONSTRAINT TRIGGER gate_commit AFTER INSERT ON ledger_entry DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION wait_at_gate('commit', 'idem_key')`);
}

/** Shuts a gate for one key; for the handler it is the subject's id. */
export async function shutGate(database: TestDatabase, place: Place, name: string): Promise<Gate> {
  const client = new pg.Client({ connectionString: database.url });
  client.on('error', () => undefined);
  await client.connect();
  await client.query('SELECT pg_advisory_lock(hashtextextended($1, 0))', [`${place} ${name}`]);
  return {
    async reached(count = 1) {
      await until(`${count} transactions at a gate`, async () => (await sleepers(database)).length >= count);
    },
    open: () => client.end(),
  };
}

/** The server processes of the service that stand at a gate. */
export async function sleepers(database: TestDatabase): Promise<number[]> {
  const rows = await database.query<{ pid: number }>(
    `SELECT pid FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'decision-ledger' AND wait_event = 'PgSleep'`,
  );
  return rows.map(({ pid }) => pid);
}

/** How many server processes of the service wait for a lock. */
export async function lockWaiters(database: TestDatabase): Promise<number> {
  const rows = await database.query(
    `SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'decision-ledger' AND wait_event_type = 'Lock'`,
  );
  return rows.length;
}
