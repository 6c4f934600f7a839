-- What somebody is told who has waited in vain for a row that another transaction had locked: not only that it was locked, but
-- by whom it is held, as far as that is committed, and until when.

-- Looks without a lock, and records the arrival. A key that is known is answered as ever; of another's hold on the content or
-- the subject it tells the holder. No row: whoever holds it can be seen by nobody before its COMMIT.
CREATE FUNCTION tell_to_wait(p_tenant text, p_rows json, p_holder uuid) RETURNS SETOF decision_answer LANGUAGE plpgsql AS $$
DECLARE
  v_rows decision_row[];
  r decision_row;
  v_holder uuid := p_holder;
BEGIN
  PERFORM set_config('app.tenant', p_tenant, true);
  v_rows := decision_rows(p_rows);
  r := v_rows[1];
  IF EXISTS (SELECT FROM key_identity(p_tenant, r.idem_key)) THEN
    RETURN QUERY SELECT * FROM conclude_decisions(p_tenant, v_rows, '{}', '{}', '{}', clock_timestamp());
    RETURN;
  END IF;
  IF v_holder IS NULL AND r.same_content <> 'allow' THEN
    SELECT c.decision_id INTO v_holder FROM content_hold c WHERE c.tenant_id = p_tenant AND c.content_hash = r.content_hash;
  END IF;
  IF v_holder IS NULL AND r.place IS NOT NULL THEN
    v_holder := hold_holder(p_tenant, r);
  END IF;
  PERFORM note_attempt(p_tenant, r, v_holder, 'in_flight', 'in-flight');
  RETURN QUERY
    SELECT s.* FROM decision_record d, lease_state(p_tenant, d.idem_key, 'in_flight', 'in-flight') s
     WHERE d.tenant_id = p_tenant AND d.decision_id = v_holder;
END $$;

-- As for the write path: every lookup is by index, and one plan is right for all.
ALTER FUNCTION tell_to_wait (text, json, uuid) SET plan_cache_mode = force_generic_plan;
