-- What the reading side looks into: each recorded decision in one narrow row, with an index for each question. It is a copy and
-- never the record: it is written from the ledger entry and the decision in the statement that appends the entry, and could
-- be made again from the two at any time.
--
-- Operator: copies every ledger entry once and builds the indexes while writers wait; about a minute for a million entries.

-- The number of the transaction, as a column can hold it.
CREATE FUNCTION this_transaction() RETURNS bigint LANGUAGE sql VOLATILE
  RETURN pg_current_xact_id()::text::bigint;

CREATE TABLE recorded_decision (
  tenant_id text COLLATE "C" NOT NULL,
  decision_id uuid NOT NULL,
  ledger_entry_id uuid NOT NULL,
  received_at timestamptz NOT NULL,
  recorded_at timestamptz NOT NULL,
  -- The transaction that recorded it. A walk over pages tells by it what was recorded before it began.
  recorded_in bigint NOT NULL DEFAULT this_transaction(),
  action_version integer NOT NULL,
  action text COLLATE "C" NOT NULL,
  subject_type text COLLATE "C" NOT NULL,
  subject_id text COLLATE "C" NOT NULL,
  reporting_period text COLLATE "C",
  model_id text COLLATE "C" NOT NULL,
  model_version text COLLATE "C" NOT NULL,
  prompt_template_sha256 bytea NOT NULL,
  retrieval_snapshot_id text COLLATE "C" NOT NULL,
  policy_version text COLLATE "C" NOT NULL,
  outcome text COLLATE "C" NOT NULL,
  reason text COLLATE "C",
  external_ref text COLLATE "C",
  CONSTRAINT recorded_decision_pkey PRIMARY KEY (decision_id, tenant_id),
  CONSTRAINT recorded_decision_lengths CHECK (
    char_length(action) BETWEEN 1 AND 64 AND char_length(subject_type) BETWEEN 1 AND 255 AND char_length(subject_id) BETWEEN 1 AND 255
    AND char_length(reporting_period) BETWEEN 1 AND 10 AND char_length(model_id) BETWEEN 1 AND 255 AND char_length(model_version) BETWEEN 1 AND 255
    AND char_length(retrieval_snapshot_id) BETWEEN 1 AND 255 AND char_length(policy_version) BETWEEN 1 AND 255 AND char_length(outcome) BETWEEN 1 AND 10
    AND char_length(reason) BETWEEN 1 AND 255 AND char_length(external_ref) BETWEEN 1 AND 255)
);

ALTER TABLE recorded_decision ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON recorded_decision
  USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
GRANT SELECT, INSERT ON recorded_decision TO decision_ledger_service;

-- Copies entries as they are appended. The lookup is a subquery of its own (OFFSET 0) so that each entry's decision is
-- found by its index, however many or few there are.
CREATE FUNCTION copy_recorded() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO recorded_decision
    (tenant_id, decision_id, ledger_entry_id, received_at, recorded_at, action_version, action, subject_type, subject_id, reporting_period,
     model_id, model_version, prompt_template_sha256, retrieval_snapshot_id, policy_version, outcome, reason, external_ref)
  SELECT l.tenant_id, l.decision_id, l.ledger_entry_id, d.received_at, l.recorded_at, d.action_version, d.action, d.subject_type, d.subject_id,
         d.reporting_period, d.model_id, d.model_version, d.prompt_template_sha256, d.retrieval_snapshot_id, d.policy_version, l.outcome, l.reason,
         l.external_ref
    FROM appended l
   CROSS JOIN LATERAL (SELECT * FROM decision_record d WHERE d.decision_id = l.decision_id AND d.tenant_id = l.tenant_id OFFSET 0) d;
  RETURN NULL;
END $$;

CREATE TRIGGER copy_recorded AFTER INSERT ON ledger_entry REFERENCING NEW TABLE AS appended
  FOR EACH STATEMENT EXECUTE FUNCTION copy_recorded();

-- What is there already. Row-level security holds for the owner too, so each tenant is copied in its own session.
DO $$
DECLARE
  v_tenants text[];
  v_tenant text;
BEGIN
  PERFORM set_config('app.tenant', '*', true);
  SELECT coalesce(array_agg(t.tenant_id), '{}') INTO v_tenants FROM tenant t;
  FOREACH v_tenant IN ARRAY v_tenants LOOP
    PERFORM set_config('app.tenant', v_tenant, true);
    INSERT INTO recorded_decision
      (tenant_id, decision_id, ledger_entry_id, received_at, recorded_at, action_version, action, subject_type, subject_id, reporting_period,
       model_id, model_version, prompt_template_sha256, retrieval_snapshot_id, policy_version, outcome, reason, external_ref)
    SELECT l.tenant_id, l.decision_id, l.ledger_entry_id, d.received_at, l.recorded_at, d.action_version, d.action, d.subject_type, d.subject_id,
           d.reporting_period, d.model_id, d.model_version, d.prompt_template_sha256, d.retrieval_snapshot_id, d.policy_version, l.outcome, l.reason,
           l.external_ref
      FROM ledger_entry l
      JOIN decision_record d ON d.decision_id = l.decision_id AND d.tenant_id = l.tenant_id
     WHERE l.tenant_id = v_tenant;
  END LOOP;
  PERFORM set_config('app.tenant', '', true);
END $$;

-- Each finds the rows of one filter in the order of the list; what a second filter asks is looked at row by row, or by a
-- second index beside it.
CREATE INDEX recorded_decision_by_time ON recorded_decision (tenant_id, recorded_at, decision_id);
-- Recorded later than they were received: those that a walk may have met while they were in flight.
CREATE INDEX recorded_decision_once_in_flight ON recorded_decision (tenant_id, recorded_at) WHERE received_at <> recorded_at;
CREATE INDEX recorded_decision_by_action ON recorded_decision (action, tenant_id, recorded_at);
CREATE INDEX recorded_decision_by_action_version ON recorded_decision (action_version, tenant_id, recorded_at);
CREATE INDEX recorded_decision_by_subject ON recorded_decision (subject_id, tenant_id, recorded_at);
CREATE INDEX recorded_decision_by_subject_type ON recorded_decision (subject_type, tenant_id, recorded_at);
CREATE INDEX recorded_decision_by_model ON recorded_decision (model_id, tenant_id, recorded_at);
CREATE INDEX recorded_decision_by_model_version ON recorded_decision (model_version, tenant_id, recorded_at);
CREATE INDEX recorded_decision_by_prompt_template ON recorded_decision (prompt_template_sha256, tenant_id, recorded_at);
CREATE INDEX recorded_decision_by_retrieval_snapshot ON recorded_decision (retrieval_snapshot_id, tenant_id, recorded_at);
CREATE INDEX recorded_decision_by_policy ON recorded_decision (policy_version, tenant_id, recorded_at);
CREATE INDEX recorded_decision_by_period ON recorded_decision (reporting_period, tenant_id, recorded_at) WHERE reporting_period IS NOT NULL;
CREATE INDEX recorded_decision_by_reason ON recorded_decision (reason, tenant_id, recorded_at) WHERE reason IS NOT NULL;
CREATE INDEX recorded_decision_refused ON recorded_decision (tenant_id, recorded_at) WHERE outcome = 'refused';
CREATE INDEX recorded_decision_by_external_ref ON recorded_decision (external_ref, tenant_id) WHERE external_ref IS NOT NULL;

-- Its questions are asked of the copy from now on.
DROP INDEX ledger_entry_by_time;
