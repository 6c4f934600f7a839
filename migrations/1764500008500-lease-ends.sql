-- How a lease ends, or is kept: renewed, completed, given up, resolved, swept.

-- The record of a decision whose effect is outside, locked. None if there is no such decision, if its record was pruned,
-- or if its key was resolved to another's decision.
CREATE FUNCTION lock_lease(p_tenant text, p_decision_id uuid) RETURNS SETOF idempotency_record LANGUAGE sql
BEGIN ATOMIC
  SELECT i.*
    FROM decision_record d
    JOIN idempotency_record i ON i.tenant_id = d.tenant_id AND i.idem_key = d.idem_key AND i.decision_id = d.decision_id
   WHERE d.tenant_id = p_tenant AND d.decision_id = p_decision_id
     FOR UPDATE OF i;
END;

-- Whether whoever presents this token, and this number, is the last holder: nobody has reclaimed or resolved since.
CREATE FUNCTION is_last_holder(i idempotency_record, p_lease_number integer, p_token_sha256 bytea) RETURNS boolean LANGUAGE sql IMMUTABLE
  RETURN coalesce(i.lease_number = p_lease_number AND i.lease_token_sha256 = p_token_sha256, false);

-- Prolongs a lease. The last holder may do so also after its time, as long as nobody has taken it.
CREATE FUNCTION renew_lease(p_tenant text, p_lock_timeout_ms integer, p_rows json, p_lease_number integer, p_token_sha256 bytea)
  RETURNS SETOF decision_answer LANGUAGE plpgsql AS $$
DECLARE
  r decision_row;
  i idempotency_record;
BEGIN
  PERFORM enter_tenant(p_tenant, p_lock_timeout_ms);
  r := (decision_rows(p_rows))[1];
  SELECT * INTO i FROM lock_lease(p_tenant, r.decision_id);
  IF i.status = 'in_flight' AND is_last_holder(i, p_lease_number, p_token_sha256) THEN
    UPDATE idempotency_record x SET locked_until = clock_timestamp() + make_interval(secs => i.lease_seconds)
     WHERE x.tenant_id = p_tenant AND x.idem_key = i.idem_key;
    PERFORM note_attempt(p_tenant, r, r.decision_id, 'renewed', NULL);
    RETURN QUERY SELECT * FROM lease_state(p_tenant, i.idem_key, 'renewed', NULL);
  ELSE
    RETURN QUERY SELECT * FROM lease_lost(p_tenant, r);
  END IF;
END $$;

-- Records that a report came from somebody who is not the holder, and says how the decision stands.
CREATE FUNCTION lease_lost(p_tenant text, p_row decision_row) RETURNS SETOF decision_answer LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_attempt(p_tenant, p_row, p_row.decision_id, 'lease_lost', 'lease-lost');
  RETURN QUERY
    SELECT 0, 'lease_lost', p_row.decision_id, coalesce(i.status, 'completed'), NULL::integer, NULL::text,
         NULL::double precision, p_row.idem_key, NULL::text, 'lease-lost', NULL::integer, NULL::text, NULL::integer
      FROM (SELECT) one
      LEFT JOIN idempotency_record i ON i.tenant_id = p_tenant AND i.idem_key = p_row.idem_key;
END $$;

-- Ends a lease, or what is unknown, with an outcome: effect, entry, final key state and response in one transaction, with
-- the fencing number compared in it. A resolution brings no number. The same outcome again is answered as it was.
CREATE FUNCTION complete_lease(p_tenant text, p_lock_timeout_ms integer, p_rows json, p_applied boolean, p_lease_number integer,
                               p_token_sha256 bytea, p_conclusion_sha256 bytea)
  RETURNS SETOF decision_answer LANGUAGE plpgsql AS $$
DECLARE
  v_rows decision_row[];
  r decision_row;
  i idempotency_record;
  v_ids uuid[];
  v_at timestamptz;
  v_is_resolution boolean := p_lease_number IS NULL;
  v_may boolean;
BEGIN
  PERFORM enter_tenant(p_tenant, p_lock_timeout_ms);
  v_rows := decision_rows(p_rows);
  r := v_rows[1];
  SELECT * INTO i FROM lock_lease(p_tenant, r.decision_id);
  -- A resolution takes the token from the record, so the last holder and the resolver know their own conclusions again.
  v_may := CASE WHEN v_is_resolution THEN i.lease_token_sha256 IS NULL ELSE is_last_holder(i, p_lease_number, p_token_sha256) END;

  IF i.status = 'completed' AND v_may AND i.conclusion_sha256 IS NOT NULL THEN
    -- Against the fingerprint that the key has, the request is the one that it was; only its outcome may differ.
    r.fingerprint := CASE WHEN i.conclusion_sha256 = p_conclusion_sha256 THEN i.fingerprint ELSE p_conclusion_sha256 END;
    RETURN QUERY SELECT * FROM conclude_decisions(p_tenant, ARRAY[r], '{}', '{}', '{}', clock_timestamp());
    RETURN;
  END IF;

  IF v_is_resolution AND i.status IS DISTINCT FROM 'unknown' THEN
    RETURN QUERY SELECT * FROM not_unknown(p_tenant, r);
    RETURN;
  END IF;
  IF NOT v_is_resolution AND NOT (v_may AND i.status IN ('in_flight', 'unknown')) THEN
    RETURN QUERY SELECT * FROM lease_lost(p_tenant, r);
    RETURN;
  END IF;

  v_ids := ARRAY[r.decision_id];
  v_at := clock_timestamp();
  DELETE FROM hold h WHERE h.tenant_id = p_tenant AND h.subject_type = r.subject_type AND h.subject_id = r.subject_id
                       AND h.action = r.action AND h.decision_id = r.decision_id;
  IF p_applied THEN
    IF cardinality(apply_effects(p_tenant, v_rows, v_ids, v_at)) = 0 THEN
      RAISE EXCEPTION 'the place of decision % was taken while it held it', r.decision_id;
    END IF;
  END IF;
  UPDATE idempotency_record x
     SET status = 'completed', locked_until = NULL, conclusion_sha256 = p_conclusion_sha256,
         lease_token_sha256 = CASE WHEN v_is_resolution THEN NULL ELSE x.lease_token_sha256 END,
         response_status = CASE WHEN p_applied THEN 201 ELSE 409 END,
         response_body = CASE WHEN p_applied THEN r.applied_head ELSE r.refused_head END || rfc3339(v_at) || '"}',
         expires_at = v_at + make_interval(secs => r.retention_seconds)
   WHERE x.tenant_id = p_tenant AND x.idem_key = i.idem_key;
  DELETE FROM dispatch q WHERE q.tenant_id = p_tenant AND q.decision_id = r.decision_id;
  r.fingerprint := i.fingerprint;
  RETURN QUERY SELECT * FROM conclude_decisions(p_tenant, ARRAY[r], v_ids, v_ids, CASE WHEN p_applied THEN v_ids ELSE '{}' END, v_at,
                                                CASE WHEN v_is_resolution THEN 'resolved' ELSE 'completed' END);
END $$;

-- A resolution of what is not, or no longer, unknown.
CREATE FUNCTION not_unknown(p_tenant text, p_row decision_row) RETURNS SETOF decision_answer LANGUAGE sql
BEGIN ATOMIC
  SELECT 0, 'resolved', p_row.decision_id, coalesce(i.status, 'completed'), NULL::integer, NULL::text,
         NULL::double precision, p_row.idem_key, NULL::text, 'not-unknown', NULL::integer, NULL::text, NULL::integer
    FROM (SELECT) one
    LEFT JOIN idempotency_record i ON i.tenant_id = p_tenant AND i.idem_key = p_row.idem_key;
END;

-- Ends what is under way, or unknown, without an outcome: nothing happened, so the key, the place and the content are free
-- again; or nobody knows, so they stay.
CREATE FUNCTION end_without_outcome(p_tenant text, p_row decision_row, p_end text, p_conclusion_sha256 bytea, p_as text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE idempotency_record x
     SET status = p_end, locked_until = NULL, conclusion_sha256 = p_conclusion_sha256, reclaims = 0,
         lease_token_sha256 = CASE WHEN p_as = 'resolved' THEN NULL ELSE x.lease_token_sha256 END
   WHERE x.tenant_id = p_tenant AND x.idem_key = p_row.idem_key;
  DELETE FROM dispatch q WHERE q.tenant_id = p_tenant AND q.decision_id = p_row.decision_id;
  IF p_end = 'failed' THEN
    DELETE FROM hold h WHERE h.tenant_id = p_tenant AND h.subject_type = p_row.subject_type AND h.subject_id = p_row.subject_id
                         AND h.action = p_row.action AND h.decision_id = p_row.decision_id;
    DELETE FROM content_hold c WHERE c.tenant_id = p_tenant AND c.content_hash = p_row.content_hash AND c.decision_id = p_row.decision_id;
  END IF;
  PERFORM note_attempt(p_tenant, p_row, p_row.decision_id, p_as, NULL);
END $$;

-- Ends a lease without an outcome. An admin's release, which brings no number, frees what is unknown. The same again: the same answer.
CREATE FUNCTION fail_lease(p_tenant text, p_lock_timeout_ms integer, p_rows json, p_is_unknown boolean, p_lease_number integer,
                           p_token_sha256 bytea, p_conclusion_sha256 bytea)
  RETURNS SETOF decision_answer LANGUAGE plpgsql AS $$
DECLARE
  r decision_row;
  i idempotency_record;
  v_is_release boolean := p_lease_number IS NULL;
  v_may boolean;
  v_end text := CASE WHEN p_is_unknown THEN 'unknown' ELSE 'failed' END;
BEGIN
  PERFORM enter_tenant(p_tenant, p_lock_timeout_ms);
  r := (decision_rows(p_rows))[1];
  SELECT * INTO i FROM lock_lease(p_tenant, r.decision_id);
  v_may := CASE WHEN v_is_release THEN i.lease_token_sha256 IS NULL ELSE is_last_holder(i, p_lease_number, p_token_sha256) END;

  IF i.status = v_end AND v_may AND i.conclusion_sha256 = p_conclusion_sha256 THEN
    PERFORM note_attempt(p_tenant, r, r.decision_id, 'replayed', NULL);
    RETURN QUERY SELECT * FROM lease_state(p_tenant, i.idem_key, 'replayed', NULL);
    RETURN;
  END IF;
  IF v_is_release AND i.status IS DISTINCT FROM 'unknown' THEN
    RETURN QUERY SELECT * FROM not_unknown(p_tenant, r);
    RETURN;
  END IF;
  IF NOT v_is_release AND NOT (v_may AND i.status IN ('in_flight', 'unknown')) THEN
    RETURN QUERY SELECT * FROM lease_lost(p_tenant, r);
    RETURN;
  END IF;

  PERFORM end_without_outcome(p_tenant, r, v_end, p_conclusion_sha256, CASE WHEN v_is_release THEN 'resolved' ELSE v_end END);
  RETURN QUERY SELECT * FROM lease_state(p_tenant, i.idem_key, CASE WHEN v_is_release THEN 'resolved' ELSE v_end END, NULL);
END $$;

-- Marks the leases of a tenant that ran out and may not be run again: the action says so, or they ran out too often. What
-- is queued is left to the worker that finds it there.
CREATE FUNCTION sweep_leases(p_tenant text, p_limit integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  v_marked integer;
BEGIN
  PERFORM set_config('app.tenant', p_tenant, true);
  WITH due AS MATERIALIZED (
    SELECT i.idem_key, i.lease_number FROM idempotency_record i
     WHERE i.tenant_id = p_tenant AND i.status = 'in_flight' AND i.locked_until <= now() AND (i.on_expired_lease = 'unknown' OR i.reclaims >= 5)
       AND NOT EXISTS (SELECT FROM dispatch q WHERE q.tenant_id = i.tenant_id AND q.decision_id = i.decision_id)
     ORDER BY i.locked_until
     LIMIT p_limit
       FOR UPDATE SKIP LOCKED
  )
  UPDATE idempotency_record i SET status = 'unknown'
    FROM due
   WHERE i.tenant_id = p_tenant AND i.idem_key = due.idem_key AND i.status = 'in_flight' AND i.locked_until <= now()
     AND i.lease_number = due.lease_number;
  GET DIAGNOSTICS v_marked = ROW_COUNT;
  RETURN v_marked;
END $$;

-- As for the write path: every lookup is by index, and one plan is right for all.
ALTER FUNCTION complete_lease (text, integer, json, boolean, integer, bytea, bytea) SET plan_cache_mode = force_generic_plan;
