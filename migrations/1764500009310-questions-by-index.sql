-- What is asked of many decisions and attempts is answered from indexes alone, without a look at the rows.
--
-- Operator: builds an index on the attempts and most of those on the copy anew while writers wait; about a minute for a million
-- decisions.

-- With what attempts are counted by, and what is asked of them beside their decision.
DROP INDEX attempt_by_time;
CREATE INDEX attempt_by_time ON attempt (tenant_id, received_at, attempt_id, decision_id, disposition, credential_id);

-- Each with the decision: it ends the order of the list, and is all that is asked for where the attempts are meant.
DROP INDEX recorded_decision_by_action, recorded_decision_by_action_version, recorded_decision_by_subject, recorded_decision_by_subject_type,
  recorded_decision_by_model, recorded_decision_by_model_version, recorded_decision_by_prompt_template, recorded_decision_by_retrieval_snapshot,
  recorded_decision_by_policy, recorded_decision_by_period, recorded_decision_by_reason;
CREATE INDEX recorded_decision_by_action ON recorded_decision (action, tenant_id, recorded_at, decision_id);
CREATE INDEX recorded_decision_by_action_version ON recorded_decision (action_version, tenant_id, recorded_at, decision_id);
CREATE INDEX recorded_decision_by_subject ON recorded_decision (subject_id, tenant_id, recorded_at, decision_id);
CREATE INDEX recorded_decision_by_subject_type ON recorded_decision (subject_type, tenant_id, recorded_at, decision_id);
CREATE INDEX recorded_decision_by_model ON recorded_decision (model_id, tenant_id, recorded_at, decision_id);
CREATE INDEX recorded_decision_by_model_version ON recorded_decision (model_version, tenant_id, recorded_at, decision_id);
CREATE INDEX recorded_decision_by_prompt_template ON recorded_decision (prompt_template_sha256, tenant_id, recorded_at, decision_id);
CREATE INDEX recorded_decision_by_retrieval_snapshot ON recorded_decision (retrieval_snapshot_id, tenant_id, recorded_at, decision_id);
CREATE INDEX recorded_decision_by_policy ON recorded_decision (policy_version, tenant_id, recorded_at, decision_id);
CREATE INDEX recorded_decision_by_period ON recorded_decision (reporting_period, tenant_id, recorded_at, decision_id) WHERE reporting_period IS NOT NULL;
-- A reason belongs to few actions, and to refusals: beside any other there is nothing to find, however long one looks.
CREATE INDEX recorded_decision_by_reason ON recorded_decision (reason, tenant_id, recorded_at, decision_id, action, outcome) WHERE reason IS NOT NULL;
