-- The record: one entry for each final decision, unique by key, kept for good; and what a request is told of it.

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
  CONSTRAINT ledger_entry_pkey PRIMARY KEY (ledger_entry_id, tenant_id),
  CONSTRAINT ledger_entry_key_once UNIQUE (idem_key, tenant_id),
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

-- How the lookups below are written: the policies of row-level security keep PostgreSQL from using a function's result as
-- an index condition unless it is computed first, and an OR with NOT EXISTS makes it hash the whole tenant. So an id is
-- computed in a subquery of its own (OFFSET 0 keeps it there), and a row is looked up by one index after the other.

-- Appends the entries, completes what was refused or resolved to another key's decision, answers every request of the
-- batch and records its attempt. The four sets of decisions each hold the next: all, claimed, recorded, applied.
-- p_as names the attempt that brought an outcome, where it was not the request itself: 'completed' or 'resolved'.
CREATE FUNCTION conclude_decisions(p_tenant text, p_rows decision_row[], p_claimed uuid[], p_recorded uuid[], p_applied uuid[], p_at timestamptz,
                                   p_as text DEFAULT NULL)
  RETURNS SETOF decision_answer LANGUAGE plpgsql AS $$
DECLARE
  v_refused_at timestamptz;
  v_answers decision_answer[] := '{}';
  v_found decision_answer[];
BEGIN
  IF cardinality(p_applied) > 0 THEN
    INSERT INTO ledger_entry
      (tenant_id, ledger_entry_id, idem_key, decision_id, outcome, effect_id, result, external_ref, credential_id, recorded_at, response_expires_at)
    SELECT p_tenant, r.ledger_entry_id, r.idem_key, r.decision_id, 'applied', r.effect_id, r.result, r.external_ref, r.credential_id, p_at,
           p_at + make_interval(secs => r.retention_seconds)
      FROM unnest(p_rows) r
     WHERE r.decision_id = ANY (p_applied)
     ORDER BY r.idem_key;
    SELECT array_agg(ROW(
             r.ordinal, coalesce(p_as, 'created'), r.decision_id, 'completed', 201, r.applied_head || rfc3339(p_at) || '"}',
             extract(epoch FROM p_at + make_interval(secs => r.retention_seconds))::double precision,
             r.idem_key, rfc3339(p_at), NULL, NULL, NULL, NULL)::decision_answer)
      INTO v_answers
      FROM unnest(p_rows) r
     WHERE r.decision_id = ANY (p_applied);
  END IF;

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
        LEFT JOIN LATERAL (SELECT place_holder(p_tenant, r) AS decision_id OFFSET 0) h ON r.refusal_reason IS NULL
        LEFT JOIN LATERAL (
          SELECT d.idem_key FROM decision_record d WHERE d.tenant_id = p_tenant AND d.decision_id = h.decision_id OFFSET 0
        ) d ON true
        LEFT JOIN LATERAL (
          SELECT l.decision_id, l.idem_key, l.recorded_at FROM ledger_entry l WHERE l.tenant_id = p_tenant AND l.idem_key = d.idem_key OFFSET 0
        ) w ON true
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

  -- What was just applied is known; everything else is read back from where it stands.
  IF cardinality(p_applied) < cardinality(p_rows) THEN
    SELECT array_agg(ROW(
             r.ordinal,
             verdict.disposition,
             d.decision_id,
             CASE WHEN l.idem_key IS NOT NULL THEN 'completed' ELSE coalesce(i.status, 'in_flight') END,
             CASE WHEN l.outcome = 'applied' THEN 201 WHEN l.outcome = 'refused' THEN 409 END,
             coalesce(i.response_body, l.refusal),
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
           )::decision_answer)
      INTO v_found
      FROM unnest(p_rows) r
      LEFT JOIN LATERAL key_identity(p_tenant, r.idem_key) k ON true
      CROSS JOIN LATERAL (SELECT coalesce(k.decision_id, CASE WHEN r.same_content = 'refuse' THEN content_holder(p_tenant, r.content_hash) END) AS decision_id OFFSET 0) h
      JOIN LATERAL (
        SELECT d.decision_id, d.idem_key FROM decision_record d WHERE d.tenant_id = p_tenant AND d.decision_id = h.decision_id OFFSET 0
      ) d ON true
      LEFT JOIN LATERAL (
        SELECT l.idem_key, l.outcome, l.refusal, l.response_expires_at, l.recorded_at, l.winner_decision_id FROM ledger_entry l
         WHERE l.tenant_id = p_tenant AND l.idem_key = d.idem_key OFFSET 0
      ) l ON true
      LEFT JOIN LATERAL (
        SELECT i.status, i.response_body, i.lease_number, i.locked_until FROM idempotency_record i WHERE i.tenant_id = p_tenant AND i.idem_key = d.idem_key OFFSET 0
      ) i ON true
     CROSS JOIN LATERAL (SELECT CASE
             WHEN r.decision_id = ANY (p_recorded) THEN coalesce(p_as, 'refused')
             WHEN r.decision_id = ANY (p_claimed) THEN 'same_content'
             -- Its key was claimed by an item before it in this batch, refused for its content, and is unused again.
             WHEN k.decision_id IS NULL THEN 'same_content'
             WHEN k.fingerprint <> r.fingerprint THEN 'mismatch'
             WHEN l.idem_key IS NULL AND i.status = 'unknown' THEN 'unknown'
             WHEN l.idem_key IS NULL THEN 'in_flight'
             ELSE 'replayed' END AS disposition) verdict
     WHERE NOT r.decision_id = ANY (p_applied);
    v_answers := v_answers || v_found;
  END IF;

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

  RETURN QUERY SELECT * FROM unnest(v_answers) a ORDER BY a.ordinal;
END $$;
