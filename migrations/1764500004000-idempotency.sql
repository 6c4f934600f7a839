-- A key's life. The record is the key's working state and its stored response: a cache of identity, which may be pruned.
-- What must outlive it stands in the ledger, and, for a key that was resolved to another key's decision, in bound_key.

CREATE TABLE idempotency_record (
  tenant_id text COLLATE "C" NOT NULL,
  idem_key text COLLATE "C" NOT NULL,
  key_source text NOT NULL,
  fingerprint bytea NOT NULL,
  decision_id uuid NOT NULL,
  status text NOT NULL,
  locked_until timestamptz,
  response_status smallint,
  response_body text,
  created_at timestamptz NOT NULL,
  expires_at timestamptz,
  CONSTRAINT idempotency_record_pkey PRIMARY KEY (idem_key, tenant_id),
  CONSTRAINT idempotency_record_key CHECK (idem_key ~ '^[ -~]{1,255}$'),
  CONSTRAINT idempotency_record_key_source CHECK (key_source IN ('content', 'client')),
  CONSTRAINT idempotency_record_status CHECK (status IN ('in_flight', 'completed', 'failed', 'unknown')),
  CONSTRAINT idempotency_record_fingerprint_is_sha256 CHECK (octet_length(fingerprint) = 32),
  CONSTRAINT idempotency_record_response_is_whole CHECK ((response_status IS NULL) = (response_body IS NULL)),
  CONSTRAINT idempotency_record_final_expires CHECK ((status = 'completed') = (expires_at IS NOT NULL))
);

CREATE INDEX idempotency_record_by_expiry ON idempotency_record (tenant_id, expires_at);

CREATE TABLE bound_key (
  tenant_id text COLLATE "C" NOT NULL,
  idem_key text COLLATE "C" NOT NULL,
  key_source text NOT NULL,
  fingerprint bytea NOT NULL,
  decision_id uuid NOT NULL,
  bound_at timestamptz NOT NULL,
  CONSTRAINT bound_key_pkey PRIMARY KEY (idem_key, tenant_id),
  CONSTRAINT bound_key_key CHECK (idem_key ~ '^[ -~]{1,255}$'),
  CONSTRAINT bound_key_key_source CHECK (key_source IN ('content', 'client')),
  CONSTRAINT bound_key_fingerprint_is_sha256 CHECK (octet_length(fingerprint) = 32)
);

ALTER TABLE idempotency_record ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE bound_key ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON idempotency_record
  USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
CREATE POLICY tenant_isolation ON bound_key
  USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency_record TO decision_ledger_service;
GRANT SELECT, INSERT ON bound_key TO decision_ledger_service;

-- Claims the keys that nobody holds and gives back the decisions that did; a twin waits here, on the primary key, until
-- whoever was first has committed. Rows are written in key order, so that two batches cannot wait for each other.
-- A declarative effect is known beforehand: its answer is stored with the claim, and the row is written once.
CREATE FUNCTION claim_keys(p_tenant text, p_rows decision_row[], p_at timestamptz) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
  v_claimed uuid[];
BEGIN
  WITH claimed AS (
    INSERT INTO idempotency_record AS i
      (tenant_id, idem_key, key_source, fingerprint, decision_id, status, response_status, response_body, created_at, expires_at)
    SELECT p_tenant, r.idem_key, r.key_source, r.fingerprint, r.decision_id,
           CASE WHEN r.applied_head IS NULL THEN 'in_flight' ELSE 'completed' END,
           CASE WHEN r.applied_head IS NOT NULL THEN 201 END,
           r.applied_head || rfc3339(p_at) || '"}',
           p_at,
           CASE WHEN r.applied_head IS NOT NULL THEN p_at + make_interval(secs => r.retention_seconds) END
      FROM unnest(p_rows) r
     WHERE (SELECT b.decision_id FROM bound_key b WHERE b.tenant_id = p_tenant AND b.idem_key = r.idem_key) IS NULL
     ORDER BY r.idem_key, r.ordinal
    ON CONFLICT ON CONSTRAINT idempotency_record_pkey DO NOTHING
    RETURNING i.decision_id
  )
  SELECT coalesce(array_agg(decision_id), '{}') INTO v_claimed FROM claimed;
  RETURN v_claimed;
END $$;
