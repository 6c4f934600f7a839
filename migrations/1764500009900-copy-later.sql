-- The reading copy is no longer written in the statement that records, which paid for each of its indexes, but a little later by
-- the worker. What it has not come to yet is marked, and read from where it was recorded: every list has it as soon as it is
-- committed.
--
-- Operator: touches no row. Recording gets faster; keep a worker running, or lists get slower with every entry that it has not
-- copied.

-- Recorded, and not in the copy yet.
CREATE TABLE uncopied_entry (
  tenant_id text COLLATE "C" NOT NULL,
  decision_id uuid NOT NULL,
  ledger_entry_id uuid NOT NULL,
  -- The transaction that recorded it, for the walks that ask what was recorded before they began.
  recorded_in bigint NOT NULL DEFAULT this_transaction(),
  CONSTRAINT uncopied_entry_pkey PRIMARY KEY (tenant_id, decision_id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

ALTER TABLE uncopied_entry ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON uncopied_entry
  USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
-- Nothing is ever updated: without the right to update a column PostgreSQL lets nobody lock a row, and whoever copies locks them.
GRANT SELECT, INSERT, UPDATE (recorded_in), DELETE ON uncopied_entry TO decision_ledger_service;

-- What copied each entry as it was appended now marks it.
ALTER TRIGGER copy_recorded ON ledger_entry RENAME TO mark_uncopied;
ALTER FUNCTION copy_recorded() RENAME TO mark_uncopied;
CREATE OR REPLACE FUNCTION mark_uncopied() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO uncopied_entry (tenant_id, decision_id, ledger_entry_id) SELECT a.tenant_id, a.decision_id, a.ledger_entry_id FROM appended a;
  RETURN NULL;
END $$;

-- The rows that the copy will have. Each is looked up by its index (OFFSET 0), however many there are.
CREATE VIEW uncopied_decision WITH (security_invoker = true) AS
SELECT u.tenant_id, u.decision_id, u.ledger_entry_id, d.received_at, l.recorded_at, u.recorded_in, d.action_version, d.action, d.subject_type,
       d.subject_id, d.reporting_period, d.model_id, d.model_version, d.prompt_template_sha256, d.retrieval_snapshot_id, d.policy_version,
       l.outcome, l.reason, l.external_ref
  FROM uncopied_entry u
 CROSS JOIN LATERAL (SELECT * FROM ledger_entry l WHERE l.ledger_entry_id = u.ledger_entry_id AND l.tenant_id = u.tenant_id OFFSET 0) l
 CROSS JOIN LATERAL (SELECT * FROM decision_record d WHERE d.decision_id = u.decision_id AND d.tenant_id = u.tenant_id OFFSET 0) d;

GRANT SELECT ON uncopied_decision TO decision_ledger_service;

-- Copies the next entries of each of some tenants, and tells how many of one tenant there were at most. An entry leaves the one
-- table and enters the other in one statement, so nobody sees it twice, or not at all. Several workers may copy at once.
CREATE FUNCTION copy_recorded(p_tenants text[], p_limit integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  v_tenant text;
  v_copied integer;
  v_most integer := 0;
BEGIN
  FOREACH v_tenant IN ARRAY p_tenants LOOP
    PERFORM set_config('app.tenant', v_tenant, true);
    WITH due AS MATERIALIZED (
      SELECT u.ctid, u.decision_id FROM uncopied_entry u WHERE u.tenant_id = v_tenant ORDER BY u.decision_id LIMIT p_limit FOR UPDATE SKIP LOCKED
    ), copied AS (
      INSERT INTO recorded_decision
        (tenant_id, decision_id, ledger_entry_id, received_at, recorded_at, recorded_in, action_version, action, subject_type, subject_id,
         reporting_period, model_id, model_version, prompt_template_sha256, retrieval_snapshot_id, policy_version, outcome, reason, external_ref)
      SELECT f.tenant_id, f.decision_id, f.ledger_entry_id, f.received_at, f.recorded_at, f.recorded_in, f.action_version, f.action, f.subject_type,
             f.subject_id, f.reporting_period, f.model_id, f.model_version, f.prompt_template_sha256, f.retrieval_snapshot_id, f.policy_version,
             f.outcome, f.reason, f.external_ref
        FROM due
       CROSS JOIN LATERAL (SELECT * FROM uncopied_decision f WHERE f.decision_id = due.decision_id AND f.tenant_id = v_tenant OFFSET 0) f
       ORDER BY f.recorded_at
    )
    DELETE FROM uncopied_entry WHERE ctid = ANY (ARRAY(SELECT due.ctid FROM due));
    GET DIAGNOSTICS v_copied = ROW_COUNT;
    v_most := greatest(v_most, v_copied);
  END LOOP;
  RETURN v_most;
END $$;
