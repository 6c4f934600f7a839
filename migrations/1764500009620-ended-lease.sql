-- How a lease ended, from when the record of its key is pruned: the report that ended it is still known again when it is sent
-- again, and answered from the ledger. Pruning takes a stored response, never an identity.
--
-- Operator: adds one table, which grows by a row for each decision with an effect outside whose stored response is pruned.

CREATE TABLE ended_lease (
  tenant_id text COLLATE "C" NOT NULL,
  decision_id uuid NOT NULL,
  lease_number integer NOT NULL,
  -- NULL: an admin's resolution, which takes the token from the record.
  lease_token_sha256 bytea,
  conclusion_sha256 bytea NOT NULL,
  CONSTRAINT ended_lease_pkey PRIMARY KEY (decision_id, tenant_id),
  CONSTRAINT ended_lease_hashes CHECK (octet_length(lease_token_sha256) = 32 AND octet_length(conclusion_sha256) = 32),
  CONSTRAINT ended_lease_number CHECK (lease_number >= 0)
);

ALTER TABLE ended_lease ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON ended_lease USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
GRANT SELECT, INSERT ON ended_lease TO decision_ledger_service;

-- As before, and what is to outlive the record of a key whose effect was outside is put where it stays.
CREATE OR REPLACE FUNCTION prune_responses(p_tenant text, p_limit integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  v_pruned integer;
BEGIN
  PERFORM set_config('app.tenant', p_tenant, true);
  WITH due AS MATERIALIZED (
    SELECT i.idem_key FROM idempotency_record i
     WHERE i.tenant_id = p_tenant AND i.expires_at <= now() AND i.status = 'completed'
     ORDER BY i.expires_at
     LIMIT p_limit
       FOR UPDATE SKIP LOCKED
  ), pruned AS (
    DELETE FROM idempotency_record i USING due
     WHERE i.tenant_id = p_tenant AND i.idem_key = due.idem_key AND i.expires_at <= now() AND i.status = 'completed'
       AND (EXISTS (SELECT FROM ledger_entry l WHERE l.tenant_id = p_tenant AND l.idem_key = i.idem_key)
            OR EXISTS (SELECT FROM bound_key b WHERE b.tenant_id = p_tenant AND b.idem_key = i.idem_key))
    RETURNING i.decision_id, i.lease_number, i.lease_token_sha256, i.conclusion_sha256
  ), ended AS (
    INSERT INTO ended_lease (tenant_id, decision_id, lease_number, lease_token_sha256, conclusion_sha256)
    SELECT p_tenant, p.decision_id, p.lease_number, p.lease_token_sha256, p.conclusion_sha256
      FROM pruned p
     WHERE p.conclusion_sha256 IS NOT NULL
  )
  SELECT count(*) INTO v_pruned FROM pruned;
  RETURN v_pruned;
END $$;

-- As before, and of a record that was pruned what is left of it. None if there is no such decision, if it never had a lease,
-- or if its key was resolved to another's decision.
CREATE OR REPLACE FUNCTION lock_lease(p_tenant text, p_decision_id uuid) RETURNS SETOF idempotency_record LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY
    SELECT i.*
      FROM decision_record d
      JOIN idempotency_record i ON i.tenant_id = d.tenant_id AND i.idem_key = d.idem_key AND i.decision_id = d.decision_id
     WHERE d.tenant_id = p_tenant AND d.decision_id = p_decision_id
       FOR UPDATE OF i;
  IF NOT FOUND THEN
    RETURN QUERY
      SELECT i.*
        FROM decision_record d
        JOIN ended_lease e ON e.tenant_id = d.tenant_id AND e.decision_id = d.decision_id
       CROSS JOIN LATERAL jsonb_populate_record(NULL::idempotency_record, to_jsonb(d) || to_jsonb(e) || '{"status": "completed"}') i
       WHERE d.tenant_id = p_tenant AND d.decision_id = p_decision_id;
  END IF;
END $$;
