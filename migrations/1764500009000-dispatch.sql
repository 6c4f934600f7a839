-- The queue of the effects that the service itself brings about in another system. A row is there exactly as long as its
-- decision is in flight and is for the worker to run; what was tried, and when to try next, is judged by the database's clock.
--
-- Operator: adds one small table; nothing is rewritten.

CREATE TABLE dispatch (
  tenant_id text COLLATE "C" NOT NULL,
  decision_id uuid NOT NULL,
  idem_key text COLLATE "C" NOT NULL,
  -- Under which version of the action the call is made: that of the request that queued it.
  action_version integer NOT NULL,
  host text COLLATE "C" NOT NULL,
  request_id text NOT NULL,
  tries integer NOT NULL DEFAULT 0,
  first_try_at timestamptz,
  -- While a worker is at it: when its lease ends, and others may take it over.
  next_try_at timestamptz NOT NULL,
  may_have_happened boolean NOT NULL,
  CONSTRAINT dispatch_pkey PRIMARY KEY (decision_id, tenant_id),
  CONSTRAINT dispatch_of_decision FOREIGN KEY (tenant_id, decision_id) REFERENCES decision_record (tenant_id, decision_id),
  CONSTRAINT dispatch_tries CHECK (tries >= 0 AND (tries > 0) = (first_try_at IS NOT NULL)),
  CONSTRAINT dispatch_lengths CHECK (char_length(idem_key) BETWEEN 1 AND 255 AND char_length(host) BETWEEN 1 AND 300
    AND char_length(request_id) BETWEEN 1 AND 128)
);

CREATE INDEX dispatch_due ON dispatch (tenant_id, next_try_at);

ALTER TABLE dispatch ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON dispatch USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON dispatch TO decision_ledger_service;

-- Queues a decision and, when that commits, wakes the workers. What went before, if anything did, may have happened.
CREATE FUNCTION enqueue_dispatch(p_tenant text, p_row decision_row, p_host text, p_may_have_happened boolean, p_at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO dispatch (tenant_id, decision_id, idem_key, action_version, host, request_id, next_try_at, may_have_happened)
  VALUES (p_tenant, p_row.decision_id, p_row.idem_key, p_row.action_version, p_host, p_row.request_id, p_at, p_may_have_happened);
  PERFORM pg_notify('decision_ledger_dispatch', p_tenant);
END $$;

-- The rules under which a queued decision is sent, as the action's version has them.
CREATE FUNCTION dispatch_rules(p_tenant text, p_action text, p_version integer) RETURNS json LANGUAGE sql STABLE
  RETURN (SELECT v.rules::json->'dispatch' FROM action_version v WHERE v.tenant_id = p_tenant AND v.action = p_action AND v.version = p_version);

-- A decision as the worker reports on it: an attempt of the worker's, under the id of the request that queued it.
CREATE FUNCTION dispatch_row(p_decision decision_record, p_request_id text, p_attempt_id uuid, p_elapsed_ms double precision)
  RETURNS decision_row LANGUAGE sql STABLE
  RETURN jsonb_populate_record(NULL::decision_row, to_jsonb(p_decision) || jsonb_build_object(
    'attempt_id', p_attempt_id, 'request_id', p_request_id, 'credential_id', 'worker', 'elapsed_ms', p_elapsed_ms));

-- Whether there is to be no further try at a given time: the last one was made, or the downstream's own window, which
-- begins at the first try, is over by then and it may have forgotten the key.
CREATE FUNCTION dispatch_is_over(p_queued dispatch, p_rules json, p_at timestamptz) RETURNS boolean LANGUAGE sql STABLE
  RETURN p_queued.tries >= (p_rules->>'maxAttempts')::integer
      OR coalesce(p_queued.first_try_at + make_interval(secs => (p_rules->>'idempotencyWindowSeconds')::integer) <= p_at, false);

-- A try that the worker is to make, under a lease whose number it must show again.
CREATE TYPE dispatch_job AS (
  decision_id uuid,
  lease_number integer,
  lease_seconds integer,
  try integer,
  request_id text,
  idem_key text,
  key_source text,
  action text,
  inputs text,
  rules json
);

-- Takes the lease of tries that are due, each at most once whatever the number of workers: a row that somebody else is
-- looking at is skipped. A row whose last lease ran out belonged to a worker that did not come back: that try may have
-- happened, and the decision is taken over, unless the action says that such a try is never repeated, or it ended so too
-- often. What may not be tried again is ended here; its last holder can still report what it saw, for the number stays.
CREATE FUNCTION claim_dispatch(p_tenant text, p_limit integer, p_busy_hosts text[], p_token_sha256 bytea, p_attempt_ids uuid[])
  RETURNS SETOF dispatch_job LANGUAGE plpgsql AS $$
DECLARE
  MOST_RECLAIMS CONSTANT integer := 5;
  v_due record;
  q dispatch;
  i idempotency_record;
  d decision_record;
  v_rules json;
  v_is_lapsed boolean;
  v_end text;
  v_ended integer := 0;
  v_at timestamptz;
BEGIN
  PERFORM set_config('app.tenant', p_tenant, true);
  FOR v_due IN
    SELECT w AS queued, x AS record
      FROM dispatch w
      JOIN idempotency_record x ON x.tenant_id = w.tenant_id AND x.idem_key = w.idem_key AND x.decision_id = w.decision_id
     WHERE w.tenant_id = p_tenant AND w.next_try_at <= now() AND w.host <> ALL (p_busy_hosts) AND x.status = 'in_flight'
     ORDER BY w.next_try_at
     LIMIT p_limit
       FOR UPDATE SKIP LOCKED
  LOOP
    q := v_due.queued;
    i := v_due.record;
    v_at := clock_timestamp();
    SELECT * INTO d FROM decision_record e WHERE e.tenant_id = p_tenant AND e.decision_id = q.decision_id;
    v_rules := dispatch_rules(p_tenant, d.action, q.action_version);
    v_is_lapsed := i.locked_until IS NOT NULL;
    q.may_have_happened := q.may_have_happened OR v_is_lapsed;

    IF v_is_lapsed AND (i.on_expired_lease = 'unknown' OR i.reclaims >= MOST_RECLAIMS) OR dispatch_is_over(q, v_rules, v_at) THEN
      v_ended := v_ended + 1;
      v_end := CASE WHEN q.may_have_happened THEN 'unknown' ELSE 'failed' END;
      PERFORM end_without_outcome(p_tenant, dispatch_row(d, q.request_id, p_attempt_ids[v_ended], 0), v_end, NULL, v_end);
      CONTINUE;
    END IF;

    UPDATE idempotency_record x
       SET lease_number = i.lease_number + 1, lease_token_sha256 = p_token_sha256,
           locked_until = v_at + make_interval(secs => i.lease_seconds), reclaims = i.reclaims + v_is_lapsed::integer
     WHERE x.tenant_id = p_tenant AND x.idem_key = q.idem_key;
    UPDATE dispatch w
       SET tries = q.tries + 1, first_try_at = coalesce(q.first_try_at, v_at), may_have_happened = q.may_have_happened,
           next_try_at = v_at + make_interval(secs => i.lease_seconds)
     WHERE w.tenant_id = p_tenant AND w.decision_id = q.decision_id;
    RETURN NEXT ROW(q.decision_id, i.lease_number + 1, i.lease_seconds, q.tries + 1, q.request_id, q.idem_key, d.key_source, d.action,
                    d.inputs, v_rules)::dispatch_job;
  END LOOP;
END $$;

-- Prolongs the lease of a try whose call takes longer. False: it is no longer held, and nothing more may be sent.
CREATE FUNCTION extend_dispatch(p_tenant text, p_decision_id uuid, p_lease_number integer, p_token_sha256 bytea) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  i idempotency_record;
  v_until timestamptz;
BEGIN
  PERFORM set_config('app.tenant', p_tenant, true);
  SELECT * INTO i FROM lock_lease(p_tenant, p_decision_id);
  IF NOT coalesce(i.status = 'in_flight' AND is_last_holder(i, p_lease_number, p_token_sha256), false) THEN RETURN false; END IF;
  v_until := clock_timestamp() + make_interval(secs => i.lease_seconds);
  UPDATE idempotency_record x SET locked_until = v_until WHERE x.tenant_id = p_tenant AND x.idem_key = i.idem_key;
  UPDATE dispatch w SET next_try_at = v_until WHERE w.tenant_id = p_tenant AND w.decision_id = p_decision_id;
  RETURN true;
END $$;

-- Gives back a try that brought no outcome: to be tried again after a pause, or never again. It is failed if every try
-- surely had no effect; if one may have had, nobody knows. Where the downstream knows no keys (onExpiredLease: unknown) one
-- such try is enough. NULL: the lease was lost, and nothing changed.
CREATE FUNCTION release_dispatch(p_tenant text, p_lock_timeout_ms integer, p_decision_id uuid, p_lease_number integer, p_token_sha256 bytea,
                                 p_may_have_happened boolean, p_pause_ms double precision, p_attempt_id uuid, p_elapsed_ms double precision)
  RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  q dispatch;
  i idempotency_record;
  d decision_record;
  r decision_row;
  v_next timestamptz;
  v_end text;
BEGIN
  PERFORM enter_tenant(p_tenant, p_lock_timeout_ms);
  SELECT * INTO i FROM lock_lease(p_tenant, p_decision_id);
  SELECT * INTO q FROM dispatch w WHERE w.tenant_id = p_tenant AND w.decision_id = p_decision_id;
  SELECT * INTO d FROM decision_record e WHERE e.tenant_id = p_tenant AND e.decision_id = p_decision_id;
  r := dispatch_row(d, coalesce(q.request_id, '-'), p_attempt_id, p_elapsed_ms);
  IF q.decision_id IS NULL OR NOT is_last_holder(i, p_lease_number, p_token_sha256) THEN
    PERFORM note_attempt(p_tenant, r, p_decision_id, 'lease_lost', 'lease-lost');
    RETURN NULL;
  END IF;

  q.may_have_happened := q.may_have_happened OR p_may_have_happened;
  v_end := CASE WHEN q.may_have_happened THEN 'unknown' ELSE 'failed' END;
  v_next := clock_timestamp() + make_interval(secs => p_pause_ms / 1000);
  IF (i.on_expired_lease = 'unknown' AND q.may_have_happened) OR dispatch_is_over(q, dispatch_rules(p_tenant, d.action, q.action_version), v_next) THEN
    PERFORM end_without_outcome(p_tenant, r, v_end, NULL, v_end);
    RETURN v_end;
  END IF;
  UPDATE idempotency_record x SET locked_until = NULL, lease_token_sha256 = NULL WHERE x.tenant_id = p_tenant AND x.idem_key = i.idem_key;
  UPDATE dispatch w SET next_try_at = v_next, may_have_happened = q.may_have_happened
   WHERE w.tenant_id = p_tenant AND w.decision_id = p_decision_id;
  RETURN 'in_flight';
END $$;

-- In how many milliseconds each tenant's next try is due; a tenant without one is left out. One round trip for all of them,
-- and still each in its own session.
CREATE FUNCTION dispatch_agenda(p_tenants text[]) RETURNS TABLE (tenant_id text, due_in_ms double precision) LANGUAGE plpgsql AS $$
DECLARE
  v_tenant text;
BEGIN
  FOREACH v_tenant IN ARRAY p_tenants LOOP
    PERFORM set_config('app.tenant', v_tenant, true);
    RETURN QUERY
      SELECT v_tenant, (extract(epoch FROM min(w.next_try_at) - clock_timestamp()) * 1000)::double precision
        FROM dispatch w WHERE w.tenant_id = v_tenant
      HAVING count(*) > 0;
  END LOOP;
END $$;

-- What is not finished, over all tenants: the age of the oldest key in flight, and how many are unknown.
CREATE FUNCTION unfinished_keys(p_tenants text[]) RETURNS TABLE (in_flight_oldest_seconds double precision, unknown integer) LANGUAGE plpgsql AS $$
DECLARE
  v_tenant text;
  v_oldest timestamptz;
  v_of_tenant record;
BEGIN
  unknown := 0;
  FOREACH v_tenant IN ARRAY p_tenants LOOP
    PERFORM set_config('app.tenant', v_tenant, true);
    SELECT min(i.created_at) FILTER (WHERE i.status = 'in_flight') AS oldest, count(*) FILTER (WHERE i.status = 'unknown') AS unknown
      INTO v_of_tenant
      FROM idempotency_record i WHERE i.tenant_id = v_tenant AND i.status <> 'completed';
    v_oldest := least(v_oldest, v_of_tenant.oldest);
    unknown := unknown + v_of_tenant.unknown;
  END LOOP;
  in_flight_oldest_seconds := coalesce(extract(epoch FROM clock_timestamp() - v_oldest), 0);
  RETURN NEXT;
END $$;

-- How queued decisions ended, for the requests that queued them and still listen; those that have not ended are left out. It
-- records no attempt: the requests have been counted. A failure is no outcome: the key may run again, as after the first answer.
CREATE FUNCTION dispatch_outcomes(p_tenant text, p_decision_ids uuid[]) RETURNS SETOF decision_answer LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('app.tenant', p_tenant, true);
  RETURN QUERY
    SELECT 0, CASE WHEN l.outcome = 'refused' THEN 'refused' WHEN i.status = 'unknown' THEN 'unknown' ELSE 'created' END, d.decision_id,
           CASE WHEN l.idem_key IS NOT NULL THEN 'completed' ELSE coalesce(i.status, 'failed') END,
           CASE l.outcome WHEN 'applied' THEN 201 WHEN 'refused' THEN 409 ELSE 202 END, coalesce(i.response_body, l.refusal),
           extract(epoch FROM l.response_expires_at)::double precision,
           d.idem_key, rfc3339(l.recorded_at), CASE WHEN i.status = 'unknown' THEN 'outcome-unknown' END, i.lease_number, NULL::text, NULL::integer
      FROM decision_record d
      LEFT JOIN ledger_entry l ON l.tenant_id = d.tenant_id AND l.idem_key = d.idem_key AND l.decision_id = d.decision_id
      LEFT JOIN idempotency_record i ON i.tenant_id = d.tenant_id AND i.idem_key = d.idem_key AND i.decision_id = d.decision_id
     WHERE d.tenant_id = p_tenant AND d.decision_id = ANY (p_decision_ids) AND (l.idem_key IS NOT NULL OR i.status IS DISTINCT FROM 'in_flight');
END $$;
