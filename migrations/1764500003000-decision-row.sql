-- The shape in which a batch of requests reaches the database: one row a request, sent as one JSON text. The three
-- rooms and the ledger each read their part of it, so it stands before them all.

CREATE TYPE decision_row AS (
  ordinal integer,                     -- the request's place in its batch
  idem_key text,
  key_source text,
  content_hash bytea,                  -- the first 20 bytes of SHA-256 over the canonical inputs
  fingerprint bytea,
  decision_id uuid,
  effect_id uuid,
  ledger_entry_id uuid,
  attempt_id uuid,
  action text,
  action_version integer,
  same_content text,
  place text,                          -- NULL: the action does not claim its subject; '': once a subject; else: once a period
  subject_type text,
  subject_id text,
  reporting_period text,
  model_id text,
  model_version text,
  prompt_template_sha256 bytea,
  retrieval_snapshot_id text,
  policy_version text,
  inputs text,                         -- RFC 8785 bytes of the inputs, as they were hashed
  note text,
  evidence jsonb,
  credential_id text,
  request_id text,
  elapsed_ms double precision,         -- what the request had spent before it came here
  retention_seconds double precision,
  result text,                         -- RFC 8785 bytes of the effect's result; NULL while a handler has yet to give it
  applied_head text,                   -- the answer's bytes up to the time of recording, for each way it may end
  refused_head text,
  refusal_reason text,                 -- set when the effect's own rule said no
  external_ref text                    -- the provider's reference, where the effect is outside
);

CREATE FUNCTION decision_rows(p_rows json) RETURNS decision_row[] LANGUAGE sql
  RETURN (SELECT array_agg(r) FROM json_populate_recordset(NULL::decision_row, p_rows) r);
