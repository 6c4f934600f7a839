import { credentialId, ORCHESTRATORS } from './fates.mjs';

/** One decision in so many has half of all the further arrivals: the ones that somebody tried again and again. */
const STORM_EVERY = 21;

const COLUMNS = `(tenant_id, attempt_id, idem_key, decision_id, action, disposition, won, evidence, request_id, credential_id, received_at, latency_ms, problem)`;

const problemOfOutcome = `CASE WHEN ending = 'refused' THEN CASE WHEN winner_decision_id IS NULL THEN 'refused' ELSE 'duplicate-subject' END END`;

/**
 * What every decision has: the arrival that made it and, where the effect is outside, what took it back and what ended it.
 * Whoever ends a lease brings no evidence.
 */
const FIRST = `
  SELECT n, 'arrival' AS what, CASE WHEN is_leased OR ending = 'applied' THEN 'created' ELSE 'refused' END AS disposition, NOT is_leased AS won,
         true AS is_request, received_at - interval '200 microseconds' AS at, CASE WHEN NOT is_leased THEN ${problemOfOutcome} END AS problem
    FROM whole
  UNION ALL
  SELECT n, 'reclaim', 'reclaimed', false, true, received_at + make_interval(secs => lease_seconds + 2), NULL
    FROM whole WHERE is_reclaimed
  UNION ALL
  SELECT n, 'end', CASE WHEN recorded_at IS NULL THEN ending ELSE 'completed' END, recorded_at IS NOT NULL, false,
         coalesce(recorded_at, received_at + make_interval(secs => 25)) - interval '200 microseconds', ${problemOfOutcome}
    FROM whole WHERE is_leased AND ending <> 'in_flight'`;

export const firstCountSql = `SELECT count(*)::integer AS count FROM (${FIRST}) f`;

/**
 * The further arrivals of the stretch, as many as are wanted: most are replays; some come while the first is under way, some
 * use the key for something else, some are the same content under another key. They are spread over hours after the outcome,
 * most of them soon.
 */
export const furtherSql = ({ from, to, count, numberedFrom, until }) => `
  CREATE TEMP TABLE further ON COMMIT DROP AS
  WITH aimed AS (
    SELECT ${numberedFrom} + e AS e, ${from} + CASE WHEN pg_temp.chance(${numberedFrom} + e, 'storm') < 0.5
             THEN floor(pg_temp.chance(${numberedFrom} + e, 'whom') * ${to - from + 1} / ${STORM_EVERY})::bigint * ${STORM_EVERY}
             ELSE floor(pg_temp.chance(${numberedFrom} + e, 'whom') * ${to - from + 1})::bigint END AS n
      FROM generate_series(1, ${count}::bigint) e
  ), met AS (
    SELECT a.e, w.*, pg_temp.chance(a.e, 'met') AS met, CASE
             WHEN w.execution = 'transactional' OR NOT w.is_leased THEN 'final'
             WHEN w.recorded_at IS NULL THEN w.ending ELSE w.execution END AS stage
      FROM aimed a JOIN whole w ON w.n = a.n
  ), judged AS (
    SELECT *, CASE
             WHEN met < 0.04 THEN 'mismatch'
             WHEN stage = 'in_flight' OR stage = 'unknown' THEN stage
             WHEN stage = 'failed' THEN 'mismatch'
             WHEN met < 0.07 THEN CASE same_content WHEN 'allow' THEN 'replayed' ELSE 'same_content' END
             WHEN met < 0.10 AND (execution = 'transactional' OR is_leased) THEN 'in_flight'
             WHEN met < 0.20 AND stage = 'caller' THEN 'renewed'
             WHEN met < 0.22 AND stage = 'caller' THEN 'lease_lost'
             ELSE 'replayed' END AS disposition
      FROM met
  )
  SELECT e, n, disposition, disposition NOT IN ('renewed', 'lease_lost') AS is_request,
         disposition <> 'in_flight' OR is_leased AS knows_decision,
         least('${until}'::timestamptz, CASE
           WHEN disposition IN ('in_flight', 'renewed') THEN received_at + coalesce(recorded_at - received_at, interval '20 seconds') * pg_temp.chance(e, 'early') + interval '100 microseconds'
           ELSE coalesce(recorded_at, received_at + interval '60 seconds') + make_interval(secs => 0.5 * power(10, 6 * pg_temp.chance(e, 'late'))) END) AS at,
         CASE disposition WHEN 'mismatch' THEN 'fingerprint-mismatch' WHEN 'in_flight' THEN 'in-flight' WHEN 'unknown' THEN 'outcome-unknown'
           WHEN 'lease_lost' THEN 'lease-lost' WHEN 'renewed' THEN NULL ELSE ${problemOfOutcome} END AS problem,
         CASE disposition WHEN 'same_content' THEN 'again-' || e ELSE idem_key END AS idem_key
    FROM judged;
  ANALYZE further;`;

/** Each in the order of its arrival, as far as the stretch goes. */
export const attemptsSql = `
  INSERT INTO attempt ${COLUMNS}
  SELECT * FROM (
    SELECT tenant_id, pg_temp.id(f.at, n, 'attempt ' || f.what) AS attempt_id, idem_key, decision_id, action, f.disposition, f.won,
           CASE WHEN f.is_request THEN evidence || jsonb_build_object('attempt', CASE f.what WHEN 'arrival' THEN 1 ELSE 2 END) END, request_id,
           CASE WHEN f.what = 'end' AND execution = 'dispatched' THEN 'worker' ELSE credential_id END,
           f.at AS received_at, 1 + 30 * power(pg_temp.chance(n, 'latency'), 3), f.problem
      FROM (${FIRST}) f JOIN whole USING (n)
    UNION ALL
    SELECT w.tenant_id, pg_temp.id(x.at, x.e, 'further'), x.idem_key, CASE WHEN x.knows_decision THEN w.decision_id END, w.action, x.disposition, false,
           CASE WHEN x.is_request THEN w.evidence || jsonb_build_object('attempt', 2 + floor(pg_temp.chance(x.e, 'try') * 4)) END,
           pg_temp.id(x.at, x.e, 'request')::text,
           ${credentialId('w.tenant_id', `(1 + floor(pg_temp.chance(x.e, 'credential') * ${ORCHESTRATORS}))`)}, x.at,
           CASE x.disposition WHEN 'in_flight' THEN 2000 ELSE 1 END + 20 * power(pg_temp.chance(x.e, 'latency'), 3), x.problem
      FROM further x JOIN whole w USING (n)
  ) a ORDER BY received_at`;

/** Other keys that the same content came under are bound to its first decision; the records of these keys live as long. */
export const boundKeysSql = (until) => `
  WITH bound AS (
    INSERT INTO bound_key (tenant_id, idem_key, key_source, fingerprint, decision_id, bound_at)
    SELECT w.tenant_id, x.idem_key, 'client', w.fingerprint, w.decision_id, x.at FROM further x JOIN whole w USING (n) WHERE x.disposition = 'same_content'
    RETURNING *
  )
  INSERT INTO idempotency_record (tenant_id, idem_key, key_source, fingerprint, decision_id, status, created_at, expires_at)
  SELECT b.tenant_id, b.idem_key, b.key_source, b.fingerprint, b.decision_id, 'completed', b.bound_at, b.bound_at + w.retention
    FROM bound b JOIN whole w USING (decision_id) WHERE b.bound_at + w.retention > '${until}'`;
