-- Content whose only decision has failed is free, also under an action that has become transactional since. Until now such a
-- request was taken for a repetition of a decision that nobody had made, and could not be answered.
--
-- Operator: replaces a function; no table is touched.

CREATE OR REPLACE FUNCTION record_inputs(p_tenant text, p_rows decision_row[], p_claimed uuid[], p_at timestamptz) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
  v_recorded uuid[];
BEGIN
  IF cardinality(p_claimed) = 0 THEN RETURN '{}'; END IF;
  WITH recorded AS (
    INSERT INTO decision_record AS d
      (tenant_id, decision_id, idem_key, key_source, content_hash, content_once, fingerprint, action, action_version,
       subject_type, subject_id, reporting_period, model_id, model_version, prompt_template_sha256,
       retrieval_snapshot_id, policy_version, inputs, note, credential_id, received_at)
    SELECT p_tenant, r.decision_id, r.idem_key, r.key_source, r.content_hash, CASE WHEN r.same_content <> 'allow' THEN true END,
           r.fingerprint, r.action, r.action_version, r.subject_type, r.subject_id, r.reporting_period, r.model_id,
           r.model_version, r.prompt_template_sha256, r.retrieval_snapshot_id, r.policy_version, r.inputs, r.note,
           r.credential_id, p_at
      FROM unnest(p_rows) r
     WHERE r.decision_id = ANY (p_claimed)
       -- The constraint below decides between twins; this finds content recorded while the action still allowed it twice. A
       -- decision without an entry carries nothing: one in flight holds its content elsewhere, and the others have failed.
       AND (r.same_content = 'allow'
            OR (SELECT e.decision_id FROM decision_record e WHERE e.tenant_id = p_tenant AND e.content_hash = r.content_hash LIMIT 1) IS NULL
            OR content_holder(p_tenant, r.content_hash) IS NULL)
     ORDER BY r.content_hash, r.ordinal
    ON CONFLICT ON CONSTRAINT decision_record_content_once DO NOTHING
    RETURNING d.decision_id
  )
  SELECT coalesce(array_agg(decision_id), '{}') INTO v_recorded FROM recorded;
  RETURN v_recorded;
END $$;
