-- Effects beyond the database. The key is claimed and the decision recorded in one transaction, the outcome in another;
-- between them stands a lease, judged by the database's clock, and its number, which only ever grows: whoever presents an
-- older one has lost.
--
-- Operator: adds columns with constant defaults and two small tables; no table is rewritten.

ALTER TABLE idempotency_record
  ADD COLUMN lease_number integer NOT NULL DEFAULT 0,
  ADD COLUMN lease_seconds integer,
  ADD COLUMN lease_token_sha256 bytea,
  ADD COLUMN lease_nonce_sha256 bytea,
  ADD COLUMN reclaims integer NOT NULL DEFAULT 0,
  ADD COLUMN on_expired_lease text,
  -- What ended the lease, or the unknown state: tells the same report sent again from another one.
  ADD COLUMN conclusion_sha256 bytea,
  ADD CONSTRAINT idempotency_record_on_expired_lease CHECK (on_expired_lease IN ('reclaim', 'unknown')),
  ADD CONSTRAINT idempotency_record_lease_hashes CHECK (octet_length(lease_token_sha256) = 32 AND octet_length(lease_nonce_sha256) = 32
    AND octet_length(conclusion_sha256) = 32),
  ADD CONSTRAINT idempotency_record_lease_counts CHECK (lease_number >= 0 AND reclaims >= 0 AND lease_seconds > 0);

-- Finds leases over their time, and what is unknown, without reading what is final.
CREATE INDEX idempotency_record_unfinished ON idempotency_record (tenant_id, locked_until) WHERE status <> 'completed';

-- The place of an effect outside, from the claim until it is applied, refused or given up. Then `effect` holds it, or nobody.
CREATE TABLE hold (
  tenant_id text COLLATE "C" NOT NULL,
  subject_type text COLLATE "C" NOT NULL,
  subject_id text COLLATE "C" NOT NULL,
  action text COLLATE "C" NOT NULL,
  place text COLLATE "C" NOT NULL,
  decision_id uuid NOT NULL,
  CONSTRAINT hold_pkey PRIMARY KEY (subject_id, subject_type, action, place, tenant_id),
  CONSTRAINT hold_lengths CHECK (char_length(action) BETWEEN 1 AND 64 AND char_length(subject_type) BETWEEN 1 AND 255
    AND char_length(subject_id) BETWEEN 1 AND 255 AND char_length(place) <= 10)
);

-- The content of a decision whose effect is outside: from the claim on, and for good once there is an outcome.
CREATE TABLE content_hold (
  tenant_id text COLLATE "C" NOT NULL,
  content_hash bytea NOT NULL,
  decision_id uuid NOT NULL,
  CONSTRAINT content_hold_pkey PRIMARY KEY (content_hash, tenant_id),
  CONSTRAINT content_hold_hash_length CHECK (octet_length(content_hash) = 20)
);

ALTER TABLE hold ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE content_hold ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON hold USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
CREATE POLICY tenant_isolation ON content_hold USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
GRANT SELECT, INSERT, DELETE ON hold, content_hold TO decision_ledger_service;

-- What a claim brings beside the decision's row. With a host to call, the effect is the worker's to run: the request gets
-- no lease, and the decision goes into the queue instead.
CREATE TYPE lease_terms AS (
  lease_seconds integer,
  on_expired_lease text,
  token_sha256 bytea,
  nonce_sha256 bytea,
  dispatch_host text
);

-- The decision outside that holds the place a request wants, or one that contains it.
CREATE FUNCTION hold_holder(p_tenant text, p_row decision_row) RETURNS uuid LANGUAGE sql STABLE
  RETURN (
    SELECT h.decision_id FROM hold h
     WHERE h.tenant_id = p_tenant AND h.subject_type = p_row.subject_type AND h.subject_id = p_row.subject_id
       AND h.action = p_row.action AND (p_row.place = '' OR h.place = '' OR h.place = p_row.place)
     LIMIT 1);

-- Takes what a decision outside must hold: first its content, then its subject, in the order of the transactional path.
-- Gives back NULL, or the decision that holds one of them; then nothing was taken.
CREATE FUNCTION take_holds(p_tenant text, p_row decision_row, p_decision_id uuid) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
  v_holder uuid;
BEGIN
  IF p_row.same_content <> 'allow' THEN
    INSERT INTO content_hold (tenant_id, content_hash, decision_id) VALUES (p_tenant, p_row.content_hash, p_decision_id)
    ON CONFLICT ON CONSTRAINT content_hold_pkey DO NOTHING;
    SELECT decision_id INTO v_holder FROM content_hold WHERE tenant_id = p_tenant AND content_hash = p_row.content_hash;
    IF v_holder <> p_decision_id THEN RETURN v_holder; END IF;
  END IF;
  IF p_row.place IS NOT NULL AND place_holder(p_tenant, p_row) IS NULL THEN
    INSERT INTO hold (tenant_id, subject_type, subject_id, action, place, decision_id)
    VALUES (p_tenant, p_row.subject_type, p_row.subject_id, p_row.action, p_row.place, p_decision_id)
    ON CONFLICT ON CONSTRAINT hold_pkey DO NOTHING;
    v_holder := hold_holder(p_tenant, p_row);
    IF v_holder <> p_decision_id THEN
      DELETE FROM content_hold WHERE tenant_id = p_tenant AND content_hash = p_row.content_hash AND decision_id = p_decision_id;
      RETURN v_holder;
    END IF;
  END IF;
  RETURN NULL;
END $$;

-- Lets a transactional decision wait for one outside that holds its content or its place, as it waits for any other: the
-- transaction is undone, and whoever sent it comes back. DETAIL is the decision that holds.
CREATE FUNCTION yield_to_holds(p_tenant text, p_rows decision_row[], p_claimed uuid[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_holder uuid;
BEGIN
  SELECT coalesce(h.content_id, h.place_id) INTO v_holder
    FROM unnest(p_rows) r
   CROSS JOIN LATERAL (
      SELECT CASE WHEN r.same_content <> 'allow' AND content_holder(p_tenant, r.content_hash) IS NULL THEN (
               SELECT c.decision_id FROM content_hold c WHERE c.tenant_id = p_tenant AND c.content_hash = r.content_hash) END AS content_id,
             CASE WHEN r.place IS NOT NULL THEN hold_holder(p_tenant, r) END AS place_id
      OFFSET 0) h
   WHERE r.decision_id = ANY (p_claimed) AND (h.content_id IS NOT NULL OR h.place_id IS NOT NULL)
   LIMIT 1;
  IF v_holder IS NOT NULL THEN
    RAISE EXCEPTION 'a decision outside holds what this one needs' USING ERRCODE = 'lock_not_available', DETAIL = v_holder::text;
  END IF;
END $$;

-- A key whose effect outside failed is free, also for an action that has become transactional since.
CREATE FUNCTION forget_failed(p_tenant text, p_rows decision_row[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM idempotency_record i
   WHERE i.tenant_id = p_tenant AND i.idem_key = ANY (ARRAY(SELECT r.idem_key FROM unnest(p_rows) r)) AND i.status = 'failed'
     AND i.fingerprint = (SELECT r.fingerprint FROM unnest(p_rows) r WHERE r.idem_key = i.idem_key LIMIT 1);
END $$;

-- Records an attempt that concluded nothing.
CREATE FUNCTION note_attempt(p_tenant text, p_row decision_row, p_decision_id uuid, p_disposition text, p_problem text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO attempt
    (tenant_id, attempt_id, idem_key, decision_id, action, disposition, won, evidence, request_id, credential_id, received_at, latency_ms, problem)
  VALUES (p_tenant, p_row.attempt_id, p_row.idem_key, p_decision_id, p_row.action, p_disposition, false, p_row.evidence, p_row.request_id,
          p_row.credential_id, statement_timestamp(),
          p_row.elapsed_ms + extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000, p_problem);
END $$;

-- How a lease stands, as a request for it is told: it is worth asking again when the lease ends, or, of a decision that
-- waits in the queue, when it is tried next.
CREATE FUNCTION lease_state(p_tenant text, p_key text, p_disposition text, p_problem text) RETURNS SETOF decision_answer LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN QUERY
    SELECT 0, p_disposition, i.decision_id, i.status, CASE WHEN p_problem IS NULL THEN 202 END, NULL::text,
         NULL::double precision, i.idem_key, NULL::text, p_problem, i.lease_number, rfc3339(i.locked_until),
           greatest(1, ceil(extract(epoch FROM coalesce(i.locked_until, q.next_try_at) - clock_timestamp())))::integer
      FROM idempotency_record i
      LEFT JOIN dispatch q ON q.tenant_id = i.tenant_id AND q.decision_id = i.decision_id
     WHERE i.tenant_id = p_tenant AND i.idem_key = p_key;
END $$;

-- Claims a key whose effect is outside, or takes it back from whoever let its lease run out, or tells how it stands. The
-- answer 202 means: yours to run, or, with a host to call, queued for the worker; what is queued no request takes back. A
-- request that must wait for another is recorded as an attempt only if it is the last time that it asks (p_is_last).
CREATE FUNCTION open_lease(p_tenant text, p_lock_timeout_ms integer, p_rows json, p_terms lease_terms, p_is_last boolean)
  RETURNS SETOF decision_answer LANGUAGE plpgsql AS $$
DECLARE
  MOST_RECLAIMS CONSTANT integer := 5;
  v_rows decision_row[];
  r decision_row;
  i idempotency_record;
  v_is_new boolean;
  v_is_lapsed boolean;
  v_is_dispatched boolean := p_terms.dispatch_host IS NOT NULL;
  v_holder uuid;
  v_at timestamptz;
BEGIN
  PERFORM enter_tenant(p_tenant, p_lock_timeout_ms);
  v_rows := decision_rows(p_rows);
  r := v_rows[1];
  v_is_new := cardinality(claim_keys(p_tenant, without_entry(p_tenant, v_rows), clock_timestamp())) = 1;
  SELECT * INTO i FROM idempotency_record x WHERE x.tenant_id = p_tenant AND x.idem_key = r.idem_key FOR UPDATE;
  -- The time is taken after the wait for the row: a lease is judged as it stands now.
  v_at := clock_timestamp();

  IF i.idem_key IS NULL OR i.fingerprint <> r.fingerprint OR i.status = 'completed' THEN
    RETURN QUERY SELECT * FROM conclude_decisions(p_tenant, v_rows, '{}', '{}', '{}', v_at);
    RETURN;
  END IF;

  v_is_lapsed := coalesce(i.status = 'in_flight' AND NOT v_is_new AND i.locked_until <= v_at, false)
                 AND NOT EXISTS (SELECT FROM dispatch q WHERE q.tenant_id = p_tenant AND q.decision_id = i.decision_id);
  IF i.status = 'in_flight' AND NOT v_is_new AND NOT v_is_lapsed THEN
    IF i.lease_nonce_sha256 = p_terms.nonce_sha256 THEN
      PERFORM note_attempt(p_tenant, r, i.decision_id, 'replayed', NULL);
      RETURN QUERY SELECT * FROM lease_state(p_tenant, r.idem_key, 'replayed', NULL);
    ELSE
      IF p_is_last THEN PERFORM note_attempt(p_tenant, r, i.decision_id, 'in_flight', 'in-flight'); END IF;
      RETURN QUERY SELECT * FROM lease_state(p_tenant, r.idem_key, 'in_flight', 'in-flight');
    END IF;
    RETURN;
  END IF;

  IF v_is_lapsed AND (i.on_expired_lease = 'unknown' OR i.reclaims >= MOST_RECLAIMS) THEN
    UPDATE idempotency_record x SET status = 'unknown' WHERE x.tenant_id = p_tenant AND x.idem_key = r.idem_key;
    i.status := 'unknown';
  END IF;

  IF i.status = 'unknown' THEN
    PERFORM note_attempt(p_tenant, r, i.decision_id, 'unknown', 'outcome-unknown');
    RETURN QUERY SELECT * FROM lease_state(p_tenant, r.idem_key, 'unknown', 'outcome-unknown');
    RETURN;
  END IF;

  -- From here on the effect is to run: for the first time, again after a failure, or again after a lease that ran out.
  -- A failed or lapsed decision keeps its id.
  r.decision_id := i.decision_id;
  v_rows := ARRAY[r];
  IF v_is_new OR i.status = 'failed' THEN
    IF r.same_content <> 'allow' AND content_holder(p_tenant, r.content_hash) IS NOT NULL THEN
      RETURN QUERY SELECT * FROM conclude_decisions(p_tenant, v_rows, ARRAY[r.decision_id], '{}', '{}', v_at);
      RETURN;
    END IF;
    v_holder := take_holds(p_tenant, r, r.decision_id);
    IF v_holder IS NOT NULL THEN
      IF v_is_new THEN
        DELETE FROM idempotency_record x WHERE x.tenant_id = p_tenant AND x.idem_key = r.idem_key;
      END IF;
      IF p_is_last THEN PERFORM note_attempt(p_tenant, r, v_holder, 'in_flight', 'in-flight'); END IF;
      RETURN QUERY
        SELECT s.* FROM decision_record d, lease_state(p_tenant, d.idem_key, 'in_flight', 'in-flight') s
         WHERE d.tenant_id = p_tenant AND d.decision_id = v_holder;
      RETURN;
    END IF;
    IF v_is_new THEN
      PERFORM record_inputs(p_tenant, ARRAY[jsonb_populate_record(r, '{"same_content": "allow"}')], ARRAY[r.decision_id], v_at);
    END IF;
    IF r.place IS NOT NULL AND place_holder(p_tenant, r) IS NOT NULL THEN
      RETURN QUERY SELECT * FROM conclude_decisions(p_tenant, v_rows, ARRAY[r.decision_id], ARRAY[r.decision_id], '{}', v_at);
      RETURN;
    END IF;
  END IF;

  UPDATE idempotency_record x
     SET status = 'in_flight', lease_number = i.lease_number + 1, lease_seconds = p_terms.lease_seconds,
         locked_until = CASE WHEN NOT v_is_dispatched THEN v_at + make_interval(secs => p_terms.lease_seconds) END,
         on_expired_lease = p_terms.on_expired_lease,
         lease_token_sha256 = p_terms.token_sha256, lease_nonce_sha256 = p_terms.nonce_sha256, conclusion_sha256 = NULL,
         reclaims = CASE WHEN v_is_lapsed THEN i.reclaims + 1 ELSE 0 END
   WHERE x.tenant_id = p_tenant AND x.idem_key = r.idem_key;
  IF v_is_dispatched THEN
    PERFORM enqueue_dispatch(p_tenant, r, p_terms.dispatch_host, v_is_lapsed, v_at);
  END IF;
  PERFORM note_attempt(p_tenant, r, r.decision_id, CASE WHEN v_is_new THEN 'created' ELSE 'reclaimed' END, NULL);
  RETURN QUERY SELECT * FROM lease_state(p_tenant, r.idem_key, CASE WHEN v_is_new THEN 'created' ELSE 'reclaimed' END, NULL);
END $$;

-- As for the write path: every lookup is by index, and one plan is right for all.
ALTER FUNCTION open_lease (text, integer, json, lease_terms, boolean) SET plan_cache_mode = force_generic_plan;
