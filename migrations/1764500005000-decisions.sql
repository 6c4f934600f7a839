-- What was decided and on what basis, and every arrival of a request for it. Both are only ever added to.

CREATE TABLE decision_record (
  tenant_id text COLLATE "C" NOT NULL,
  decision_id uuid NOT NULL,
  idem_key text COLLATE "C" NOT NULL,
  key_source text NOT NULL,
  content_hash bytea NOT NULL,
  content_once boolean,
  fingerprint bytea NOT NULL,
  action text COLLATE "C" NOT NULL,
  action_version integer NOT NULL,
  subject_type text COLLATE "C" NOT NULL,
  subject_id text COLLATE "C" NOT NULL,
  reporting_period text COLLATE "C",
  model_id text COLLATE "C" NOT NULL,
  model_version text COLLATE "C" NOT NULL,
  prompt_template_sha256 bytea NOT NULL,
  retrieval_snapshot_id text COLLATE "C" NOT NULL,
  policy_version text COLLATE "C" NOT NULL,
  inputs text NOT NULL,
  note text,
  credential_id text COLLATE "C" NOT NULL,
  received_at timestamptz NOT NULL,
  CONSTRAINT decision_record_pkey PRIMARY KEY (decision_id, tenant_id),
  -- content_once is true, or NULL where the action allows the same content again: NULLs are distinct, so the one
  -- index both keeps content unique and finds a decision by its content key.
  CONSTRAINT decision_record_content_once UNIQUE (content_hash, tenant_id, content_once),
  CONSTRAINT decision_record_content_once_is_true_or_null CHECK (content_once),
  CONSTRAINT decision_record_key_source CHECK (key_source IN ('content', 'client')),
  CONSTRAINT decision_record_hashes CHECK (octet_length(content_hash) = 20 AND octet_length(fingerprint) = 32 AND octet_length(prompt_template_sha256) = 32),
  CONSTRAINT decision_record_lengths CHECK (
    char_length(idem_key) BETWEEN 1 AND 255 AND char_length(action) BETWEEN 1 AND 64 AND char_length(subject_type) BETWEEN 1 AND 255 AND char_length(subject_id) BETWEEN 1 AND 255
    AND char_length(model_id) BETWEEN 1 AND 255 AND char_length(model_version) BETWEEN 1 AND 255 AND char_length(retrieval_snapshot_id) BETWEEN 1 AND 255
    AND char_length(policy_version) BETWEEN 1 AND 255 AND char_length(note) BETWEEN 1 AND 4000 AND char_length(reporting_period) BETWEEN 1 AND 10)
);

CREATE TABLE attempt (
  tenant_id text COLLATE "C" NOT NULL,
  attempt_id uuid NOT NULL,
  idem_key text COLLATE "C" NOT NULL,
  decision_id uuid,
  action text COLLATE "C" NOT NULL,
  disposition text NOT NULL,
  won boolean NOT NULL,
  evidence jsonb,
  request_id text NOT NULL,
  credential_id text COLLATE "C" NOT NULL,
  received_at timestamptz NOT NULL,
  latency_ms double precision NOT NULL,
  problem text,
  CONSTRAINT attempt_pkey PRIMARY KEY (attempt_id, tenant_id),
  CONSTRAINT attempt_disposition CHECK (disposition IN ('created', 'refused', 'replayed', 'mismatch', 'in_flight', 'same_content',
    'reclaimed', 'completed', 'failed', 'unknown', 'lease_lost', 'renewed', 'resolved')),
  CONSTRAINT attempt_lengths CHECK (char_length(idem_key) BETWEEN 1 AND 255 AND char_length(request_id) BETWEEN 1 AND 128
    AND char_length(action) BETWEEN 1 AND 64 AND char_length(problem) BETWEEN 1 AND 64)
);

CREATE INDEX attempt_by_decision ON attempt (decision_id, tenant_id);

ALTER TABLE decision_record ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE attempt ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON decision_record
  USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
CREATE POLICY tenant_isolation ON attempt
  USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
GRANT SELECT, INSERT ON decision_record, attempt TO decision_ledger_service;

-- Records the decisions whose keys were claimed, save those whose content another key carries already where the action
-- wants content once. Gives back the decisions that were recorded. Written in content order: see claim_keys.
CREATE FUNCTION record_inputs(p_tenant text, p_rows decision_row[], p_claimed uuid[], p_at timestamptz) RETURNS uuid[] LANGUAGE plpgsql AS $$
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
       -- The constraint below decides between twins; this finds content recorded while the action still allowed it twice.
       AND (r.same_content = 'allow'
            OR (SELECT e.decision_id FROM decision_record e WHERE e.tenant_id = p_tenant AND e.content_hash = r.content_hash LIMIT 1) IS NULL)
     ORDER BY r.content_hash, r.ordinal
    ON CONFLICT ON CONSTRAINT decision_record_content_once DO NOTHING
    RETURNING d.decision_id
  )
  SELECT coalesce(array_agg(decision_id), '{}') INTO v_recorded FROM recorded;
  RETURN v_recorded;
END $$;

-- Records arrivals that ended before a decision could be looked at: the ones that waited for a twin in vain.
CREATE FUNCTION record_arrivals(p_tenant text, p_rows json, p_disposition text, p_problem text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('app.tenant', p_tenant, true);
  INSERT INTO attempt
    (tenant_id, attempt_id, idem_key, action, disposition, won, evidence, request_id, credential_id, received_at, latency_ms, problem)
  SELECT p_tenant, r.attempt_id, r.idem_key, r.action, p_disposition, false, r.evidence, r.request_id, r.credential_id,
         statement_timestamp(), r.elapsed_ms, p_problem
    FROM unnest(decision_rows(p_rows)) r;
END $$;

-- The content key that a stored hash stands for.
CREATE FUNCTION content_key(p_tenant text, p_content_hash bytea) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN 'dk_' || p_tenant || '_' || encode(p_content_hash, 'hex');
