-- The record: one entry for each final decision, unique by key, kept for good; and the one transaction over the three
-- rooms. record_decisions is the whole write path of a declarative effect in one round trip. A handler's effect takes
-- the same steps with the handler in between: open_decision, apply_effects, the handler, close_decision.

CREATE TABLE ledger_entry (
  tenant_id text COLLATE "C" NOT NULL,
  ledger_entry_id uuid NOT NULL,
  idem_key text COLLATE "C" NOT NULL,
  decision_id uuid NOT NULL,
  outcome text NOT NULL,
  reason text,
  winner_decision_id uuid,
  effect_id uuid,
  result text,
  refusal text,
  external_ref text,
  credential_id text COLLATE "C" NOT NULL,
  recorded_at timestamptz NOT NULL,
  response_expires_at timestamptz NOT NULL,
  CONSTRAINT ledger_entry_pkey PRIMARY KEY (tenant_id, ledger_entry_id),
  CONSTRAINT ledger_entry_key_once UNIQUE (tenant_id, idem_key),
  CONSTRAINT ledger_entry_of_decision FOREIGN KEY (tenant_id, decision_id) REFERENCES decision_record (tenant_id, decision_id),
  CONSTRAINT ledger_entry_of_effect FOREIGN KEY (tenant_id, effect_id) REFERENCES effect (tenant_id, effect_id),
  CONSTRAINT ledger_entry_winner FOREIGN KEY (tenant_id, winner_decision_id) REFERENCES decision_record (tenant_id, decision_id),
  CONSTRAINT ledger_entry_outcome CHECK (outcome IN ('applied', 'refused')),
  CONSTRAINT ledger_entry_applied_has_effect CHECK ((outcome = 'applied') = (effect_id IS NOT NULL AND result IS NOT NULL)),
  CONSTRAINT ledger_entry_refused_has_reason CHECK ((outcome = 'refused') = (reason IS NOT NULL AND refusal IS NOT NULL)),
  CONSTRAINT ledger_entry_lengths CHECK (char_length(idem_key) BETWEEN 1 AND 255 AND char_length(reason) BETWEEN 1 AND 255
    AND char_length(external_ref) BETWEEN 1 AND 255 AND octet_length(result) <= 1048576)
);

CREATE INDEX ledger_entry_by_time ON ledger_entry (tenant_id, recorded_at, decision_id);

ALTER TABLE ledger_entry ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON ledger_entry
  USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
GRANT SELECT, INSERT ON ledger_entry TO decision_ledger_service;

-- What a request is told. The bytes are those that are stored; NULL bytes mean that the stored response was pruned and
-- is to be written out again from the entry.
CREATE TYPE decision_answer AS (
  ordinal integer,
  disposition text,
  decision_id uuid,
  state text,
  response_status integer,
  response_body text,
  expires_in_seconds double precision,
  expires_at_epoch double precision,
  winner_key text,
  winner_recorded_at text,
  problem text,
  lease_number integer,
  locked_until text,
  retry_after_seconds integer
);

-- The first decision with this content that has an outcome.
CREATE FUNCTION content_holder(p_tenant text, p_content_hash bytea) RETURNS uuid LANGUAGE sql STABLE
  RETURN (
    SELECT d.decision_id
      FROM decision_record d
      JOIN ledger_entry l ON l.tenant_id = d.tenant_id AND l.idem_key = d.idem_key AND l.decision_id = d.decision_id
     WHERE d.tenant_id = p_tenant AND d.content_hash = p_content_hash
     ORDER BY d.received_at, d.decision_id
     LIMIT 1);

-- The identity of a key: its decision and its fingerprint, wherever they stand. It outlives the idempotency record.
CREATE FUNCTION key_identity(p_tenant text, p_key text) RETURNS TABLE (decision_id uuid, fingerprint bytea) LANGUAGE sql STABLE
BEGIN ATOMIC
  SELECT i.decision_id, i.fingerprint FROM idempotency_record i WHERE i.tenant_id = p_tenant AND i.idem_key = p_key
  UNION ALL
  SELECT b.decision_id, b.fingerprint FROM bound_key b WHERE b.tenant_id = p_tenant AND b.idem_key = p_key
  UNION ALL
  SELECT d.decision_id, d.fingerprint
    FROM ledger_entry l
    JOIN decision_record d ON d.tenant_id = l.tenant_id AND d.decision_id = l.decision_id
   WHERE l.tenant_id = p_tenant AND l.idem_key = p_key
  LIMIT 1;
END;

-- Appends the entries, completes what was refused or resolved to another key's decision, answers every request of the
-- batch and records its attempt. The four sets of decisions each hold the next: all, claimed, recorded, applied.
-- p_as names the attempt that brought an outcome, where it was not the request itself: 'completed' or 'resolved'.
CREATE FUNCTION conclude_decisions(p_tenant text, p_rows decision_row[], p_claimed uuid[], p_recorded uuid[], p_applied uuid[], p_at timestamptz,
                                   p_as text DEFAULT NULL)
  RETURNS SETOF decision_answer LANGUAGE plpgsql AS $$
DECLARE
  v_refused_at timestamptz;
  v_answers decision_answer[];
BEGIN
  INSERT INTO ledger_entry
    (tenant_id, ledger_entry_id, idem_key, decision_id, outcome, effect_id, result, external_ref, credential_id, recorded_at, response_expires_at)
  SELECT p_tenant, r.ledger_entry_id, r.idem_key, r.decision_id, 'applied', r.effect_id, r.result, r.external_ref, r.credential_id, p_at,
         p_at + make_interval(secs => r.retention_seconds)
    FROM unnest(p_rows) r
   WHERE r.decision_id = ANY (p_applied)
   ORDER BY r.idem_key;

  IF cardinality(p_applied) < cardinality(p_recorded) THEN
    -- The time is taken now, after any wait for the winner, so that a refusal is never recorded before what it lost to.
    v_refused_at := clock_timestamp();
    WITH refusal AS MATERIALIZED (
      SELECT r.idem_key, r.decision_id, r.ledger_entry_id, r.credential_id, r.retention_seconds,
             coalesce(r.refusal_reason, 'duplicate-subject') AS reason,
             w.decision_id AS winner_decision_id,
             r.refused_head || rfc3339(v_refused_at) || '"' || CASE WHEN w.decision_id IS NULL THEN '' ELSE
               format(',"winner":{"decisionId":"%s","key":%s,"recordedAt":"%s"}', w.decision_id, to_json(w.idem_key), rfc3339(w.recorded_at))
               END || '}' AS body
        FROM unnest(p_rows) r
        LEFT JOIN LATERAL (
          SELECT l.decision_id, l.idem_key, l.recorded_at
            FROM decision_record d
            JOIN ledger_entry l ON l.tenant_id = d.tenant_id AND l.idem_key = d.idem_key
           WHERE d.tenant_id = p_tenant AND d.decision_id = place_holder(p_tenant, r)
        ) w ON r.refusal_reason IS NULL
       WHERE r.decision_id = ANY (p_recorded) AND NOT r.decision_id = ANY (p_applied)
    ), stored AS (
      UPDATE idempotency_record i
         SET status = 'completed', response_status = 409, response_body = x.body,
             expires_at = v_refused_at + make_interval(secs => x.retention_seconds)
        FROM refusal x
       WHERE i.tenant_id = p_tenant AND i.idem_key = x.idem_key
    )
    INSERT INTO ledger_entry
      (tenant_id, ledger_entry_id, idem_key, decision_id, outcome, reason, winner_decision_id, refusal, credential_id, recorded_at, response_expires_at)
    SELECT p_tenant, x.ledger_entry_id, x.idem_key, x.decision_id, 'refused', x.reason, x.winner_decision_id, x.body, x.credential_id,
           v_refused_at, v_refused_at + make_interval(secs => x.retention_seconds)
      FROM refusal x
     ORDER BY x.idem_key;
  END IF;

  IF cardinality(p_recorded) < cardinality(p_claimed) THEN
    DELETE FROM idempotency_record i
     USING unnest(p_rows) r
     WHERE i.tenant_id = p_tenant AND i.idem_key = r.idem_key AND i.decision_id = r.decision_id
       AND r.decision_id = ANY (p_claimed) AND NOT r.decision_id = ANY (p_recorded) AND r.same_content = 'refuse';
    WITH bound AS (
      UPDATE idempotency_record i
         SET decision_id = content_holder(p_tenant, r.content_hash), status = 'completed', response_status = NULL, response_body = NULL,
             expires_at = p_at + make_interval(secs => r.retention_seconds)
        FROM unnest(p_rows) r
       WHERE i.tenant_id = p_tenant AND i.idem_key = r.idem_key AND i.decision_id = r.decision_id
         AND r.decision_id = ANY (p_claimed) AND NOT r.decision_id = ANY (p_recorded) AND r.same_content = 'replay'
      RETURNING i.idem_key, i.key_source, i.fingerprint, i.decision_id
    )
    INSERT INTO bound_key (tenant_id, idem_key, key_source, fingerprint, decision_id, bound_at)
    SELECT p_tenant, b.idem_key, b.key_source, b.fingerprint, b.decision_id, p_at FROM bound b ORDER BY b.idem_key;
  END IF;

  SELECT array_agg(ROW(
           r.ordinal,
           verdict.disposition,
           d.decision_id,
           CASE WHEN l.idem_key IS NOT NULL THEN 'completed' ELSE coalesce(i.status, 'in_flight') END,
           CASE WHEN l.outcome = 'applied' THEN 201 WHEN l.outcome = 'refused' THEN 409 END,
           coalesce(i.response_body, l.refusal),
           extract(epoch FROM l.response_expires_at - now())::double precision,
           extract(epoch FROM l.response_expires_at)::double precision,
           l.idem_key,
           rfc3339(l.recorded_at),
           CASE WHEN verdict.disposition = 'mismatch' THEN 'fingerprint-mismatch'
                WHEN verdict.disposition = 'in_flight' THEN 'in-flight'
                WHEN verdict.disposition = 'unknown' THEN 'outcome-unknown'
                WHEN verdict.disposition = 'same_content' AND r.same_content = 'refuse' THEN 'same-content'
                WHEN l.winner_decision_id IS NOT NULL THEN 'duplicate-subject'
                WHEN l.outcome = 'refused' THEN 'refused' END,
           i.lease_number,
           rfc3339(i.locked_until),
           greatest(1, ceil(extract(epoch FROM i.locked_until - clock_timestamp())))::integer
         )::decision_answer ORDER BY r.ordinal)
    INTO v_answers
    FROM unnest(p_rows) r
    LEFT JOIN LATERAL key_identity(p_tenant, r.idem_key) k ON true
    JOIN decision_record d ON d.tenant_id = p_tenant AND d.decision_id = coalesce(k.decision_id, content_holder(p_tenant, r.content_hash))
    LEFT JOIN ledger_entry l ON l.tenant_id = p_tenant AND l.idem_key = d.idem_key
    LEFT JOIN idempotency_record i ON i.tenant_id = p_tenant AND i.idem_key = d.idem_key
   CROSS JOIN LATERAL (SELECT CASE
           WHEN r.decision_id = ANY (p_applied) THEN coalesce(p_as, 'created')
           WHEN r.decision_id = ANY (p_recorded) THEN coalesce(p_as, 'refused')
           WHEN r.decision_id = ANY (p_claimed) THEN 'same_content'
           WHEN k.fingerprint <> r.fingerprint THEN 'mismatch'
           WHEN l.idem_key IS NULL AND i.status = 'unknown' THEN 'unknown'
           WHEN l.idem_key IS NULL THEN 'in_flight'
           ELSE 'replayed' END AS disposition) verdict;

  IF coalesce(cardinality(v_answers), 0) <> cardinality(p_rows) THEN
    RAISE EXCEPTION 'a key was released while the statement ran' USING ERRCODE = 'serialization_failure';
  END IF;

  INSERT INTO attempt
    (tenant_id, attempt_id, idem_key, decision_id, action, disposition, won, evidence, request_id, credential_id, received_at, latency_ms, problem)
  SELECT p_tenant, r.attempt_id, r.idem_key, a.decision_id, r.action, a.disposition, a.disposition IN ('created', 'refused', 'completed', 'resolved'), r.evidence,
         r.request_id, r.credential_id, statement_timestamp(),
         r.elapsed_ms + extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000, a.problem
    FROM unnest(p_rows) r
    JOIN unnest(v_answers) a ON a.ordinal = r.ordinal;

  -- A replay changes nothing but the list of attempts, and what it repeats is durable already: it need not wait for the
  -- disk. A refused or mismatched attempt must be durable before it is answered.
  IF cardinality(p_claimed) = 0 AND NOT EXISTS (SELECT FROM unnest(v_answers) a WHERE a.disposition = 'mismatch') THEN
    PERFORM set_config('synchronous_commit', 'off', true);
  END IF;

  RETURN QUERY SELECT * FROM unnest(v_answers);
END $$;

-- Puts the transaction into the tenant's session. The wait for a twin is bounded, so that waiting twins cannot hold
-- every connection of a pool: 55P03 then tells the caller to let go and come back.
CREATE FUNCTION enter_tenant(p_tenant text, p_lock_timeout_ms integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('app.tenant', p_tenant, true), set_config('lock_timeout', p_lock_timeout_ms::text, true);
END $$;

-- The requests whose keys have no entry yet: pruning takes the record of a key, never its entry.
CREATE FUNCTION without_entry(p_tenant text, p_rows decision_row[]) RETURNS decision_row[] LANGUAGE sql STABLE
  RETURN (SELECT array_agg(r::decision_row) FROM unnest(p_rows) r
           WHERE NOT EXISTS (SELECT FROM ledger_entry l WHERE l.tenant_id = p_tenant AND l.idem_key = r.idem_key));

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
