-- The one transaction over the three rooms. record_decisions is the whole write path of a declarative effect in one round
-- trip. A handler's effect takes the same steps with the handler in between: open_decision, apply_effects, the handler,
-- close_decision.

-- Puts the transaction into the tenant's session. The wait for a twin is bounded, so that waiting twins cannot hold
-- every connection of a pool: 55P03 then tells the caller to let go and come back.
CREATE FUNCTION enter_tenant(p_tenant text, p_lock_timeout_ms integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('app.tenant', p_tenant, true), set_config('lock_timeout', p_lock_timeout_ms::text, true);
END $$;

-- The requests whose keys have no entry yet: pruning takes the record of a key, never its entry.
CREATE FUNCTION without_entry(p_tenant text, p_rows decision_row[]) RETURNS decision_row[] LANGUAGE plpgsql AS $$
DECLARE v_rows decision_row[];
BEGIN
  SELECT array_agg(r::decision_row) INTO v_rows FROM unnest(p_rows) r
   WHERE (SELECT l.decision_id FROM ledger_entry l WHERE l.tenant_id = p_tenant AND l.idem_key = r.idem_key) IS NULL;
  RETURN v_rows;
END $$;

-- The write path. Every request of the batch ends in its answer; all of it commits, or none.
CREATE FUNCTION record_decisions(p_tenant text, p_lock_timeout_ms integer, p_rows json) RETURNS SETOF decision_answer LANGUAGE plpgsql AS $$
DECLARE
  v_rows decision_row[];
  v_claimed uuid[];
  v_recorded uuid[];
  v_applied uuid[];
  v_at timestamptz;
BEGIN
  PERFORM enter_tenant(p_tenant, p_lock_timeout_ms);
  v_rows := decision_rows(p_rows);
  v_at := clock_timestamp();
  PERFORM forget_failed(p_tenant, v_rows);
  v_claimed := claim_keys(p_tenant, without_entry(p_tenant, v_rows), v_at);
  PERFORM yield_to_holds(p_tenant, v_rows, v_claimed);
  v_recorded := record_inputs(p_tenant, v_rows, v_claimed, v_at);
  v_applied := apply_effects(p_tenant, v_rows, v_recorded, v_at);
  RETURN QUERY SELECT * FROM conclude_decisions(p_tenant, v_rows, v_claimed, v_recorded, v_applied, v_at);
END $$;

-- The answers of the requests whose keys are known, and nothing for the others: what still stands when an action's
-- rules have changed, or the action has gone.
CREATE FUNCTION answer_known(p_tenant text, p_lock_timeout_ms integer, p_rows json) RETURNS SETOF decision_answer LANGUAGE plpgsql AS $$
DECLARE
  v_known decision_row[];
BEGIN
  PERFORM enter_tenant(p_tenant, p_lock_timeout_ms);
  SELECT array_agg(r::decision_row) INTO v_known
    FROM unnest(decision_rows(p_rows)) r
   WHERE EXISTS (SELECT FROM key_identity(p_tenant, r.idem_key));
  IF v_known IS NOT NULL THEN
    RETURN QUERY SELECT * FROM conclude_decisions(p_tenant, v_known, '{}', '{}', '{}', clock_timestamp());
  END IF;
END $$;

-- The first half for an effect with a handler: the key is claimed and the decision recorded. No row means that the
-- effect is the caller's to run in this transaction; a row is the answer, and there is nothing to run.
CREATE FUNCTION open_decision(p_tenant text, p_lock_timeout_ms integer, p_rows json) RETURNS SETOF decision_answer LANGUAGE plpgsql AS $$
DECLARE
  v_rows decision_row[];
  v_claimed uuid[];
  v_recorded uuid[];
  v_at timestamptz;
BEGIN
  PERFORM enter_tenant(p_tenant, p_lock_timeout_ms);
  v_rows := decision_rows(p_rows);
  v_at := clock_timestamp();
  PERFORM forget_failed(p_tenant, v_rows);
  v_claimed := claim_keys(p_tenant, without_entry(p_tenant, v_rows), v_at);
  PERFORM yield_to_holds(p_tenant, v_rows, v_claimed);
  v_recorded := record_inputs(p_tenant, v_rows, v_claimed, v_at);
  IF cardinality(v_recorded) = 0 THEN
    RETURN QUERY SELECT * FROM conclude_decisions(p_tenant, v_rows, v_claimed, '{}', '{}', v_at);
  END IF;
END $$;

-- The second half: the outcome, the entry and the response, in the transaction in which the handler ran.
CREATE FUNCTION close_decision(p_tenant text, p_rows json, p_applied boolean) RETURNS SETOF decision_answer LANGUAGE plpgsql AS $$
DECLARE
  v_rows decision_row[];
  v_ids uuid[];
  v_at timestamptz;
BEGIN
  v_rows := decision_rows(p_rows);
  v_ids := ARRAY(SELECT r.decision_id FROM unnest(v_rows) r);
  v_at := clock_timestamp();
  IF p_applied THEN
    UPDATE idempotency_record i
       SET status = 'completed', response_status = 201, response_body = r.applied_head || rfc3339(v_at) || '"}',
           expires_at = v_at + make_interval(secs => r.retention_seconds)
      FROM unnest(v_rows) r
     WHERE i.tenant_id = p_tenant AND i.idem_key = r.idem_key AND i.decision_id = r.decision_id;
  END IF;
  RETURN QUERY SELECT * FROM conclude_decisions(p_tenant, v_rows, v_ids, v_ids, CASE WHEN p_applied THEN v_ids ELSE '{}' END, v_at);
END $$;

-- Removes stored responses whose time is over, never identity: the entry, or the binding, must stand before the record
-- goes. SKIP LOCKED lets several workers prune side by side; the condition is checked again on the locked row.
CREATE FUNCTION prune_responses(p_tenant text, p_limit integer) RETURNS integer LANGUAGE plpgsql AS $$
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
  )
  DELETE FROM idempotency_record i USING due
   WHERE i.tenant_id = p_tenant AND i.idem_key = due.idem_key AND i.expires_at <= now() AND i.status = 'completed'
     AND (EXISTS (SELECT FROM ledger_entry l WHERE l.tenant_id = p_tenant AND l.idem_key = i.idem_key)
          OR EXISTS (SELECT FROM bound_key b WHERE b.tenant_id = p_tenant AND b.idem_key = i.idem_key));
  GET DIAGNOSTICS v_pruned = ROW_COUNT;
  RETURN v_pruned;
END $$;

-- A plan for one row looks cheaper than a plan for any, so PostgreSQL would plan every statement anew at each call. The
-- lookups above are by index whatever the rows are: one plan is right for all.
ALTER FUNCTION record_decisions (text, integer, json) SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION answer_known (text, integer, json) SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION open_decision (text, integer, json) SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION close_decision (text, json, boolean) SET plan_cache_mode = force_generic_plan;
