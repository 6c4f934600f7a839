import { actionValues, array, byVersion, VERSIONS } from './inventory.mjs';

/** The population lies in the two years before its end. In hours: what a day is would depend on the session's time zone. */
export const HOURS = 730 * 24;

/** In the mean; the busiest have far more, and the small population still has subjects to choose from. */
const DECISIONS_A_SUBJECT = 20;
const FEWEST_SUBJECTS = 20;

const MODELS = [
  ['claims-large', '2026-05-01'],
  ['claims-large', '2025-11-01'],
  ['claims-small', '2026-02-15'],
  ['notes-mini', '2025-03-01'],
  ['risk-xl', '2026-01-20'],
];
/** So many credentials of a tenant register decisions. */
export const ORCHESTRATORS = 3;

/** The id of a credential of a tenant: not a secret, and not minted, so that two runs give the same. */
export const credentialId = (tenant, number) => `substr(md5('credential ' || ${tenant} || ' ' || ${number}), 1, 20)`;

/**
 * Chance as a function of a decision's number and of what is drawn: the same seed gives the same population. The ids are of
 * UUID version 7: the time in milliseconds comes first. A Zipf of `size` is drawn by the inverse of its distribution, the
 * logarithm.
 */
export const functionsSql = (seed) => `
  CREATE OR REPLACE FUNCTION pg_temp.chance(n bigint, what text) RETURNS double precision LANGUAGE sql IMMUTABLE
    RETURN ((hashint8extended(n, hashtextextended(what, ${seed})) >> 11) & 9007199254740991)::double precision / 9007199254740992;
  CREATE OR REPLACE FUNCTION pg_temp.zipf(n bigint, what text, size integer) RETURNS integer LANGUAGE sql IMMUTABLE
    RETURN floor(exp(pg_temp.chance(n, what) * ln(size + 1)))::integer;
  CREATE OR REPLACE FUNCTION pg_temp.id(at timestamptz, n bigint, what text) RETURNS uuid LANGUAGE sql STABLE
    RETURN overlay(overlay(overlay(md5(what || ' ${seed} ' || n)
      PLACING lpad(to_hex(floor(extract(epoch FROM at) * 1000)::bigint), 12, '0') FROM 1) PLACING '7' FROM 13) PLACING '8' FROM 17)::uuid;
`;

/**
 * One narrow row a decision: when, whose, about whom, under which rules, and how it ended. A subject (and period) goes to the
 * first decision for it that nothing else speaks against; the others are refused, and know their winner. What has not ended
 * is only ever of an action without such a claim, so no place is held by it.
 */
export function fatesSql({ decisions, tenants, until }) {
  const subjects = Math.max(FEWEST_SUBJECTS, Math.round(decisions / DECISIONS_A_SUBJECT));
  const tenantNumber =
    tenants.length === 1
      ? '1'
      : `CASE WHEN n % 2 = 1 THEN 1 ELSE 2 + floor(pg_temp.chance(n, 'tenant') * ${tenants.length - 1})::integer END`;
  const end = `'${until}'::timestamptz`;
  return `
  CREATE TEMP TABLE fate AS
  WITH drawn AS (
    SELECT n, ${tenantNumber} AS tenant_number, (n - 1 + pg_temp.chance(n, 'time')) / ${decisions} AS share_of_time,
           pg_temp.chance(n, 'action') AS action_chance, pg_temp.chance(n, 'ending') AS ending_chance,
           pg_temp.zipf(n, 'subject', ${subjects}) AS subject_number
      FROM generate_series(1, ${decisions}::bigint) n
  ), acted AS (
    SELECT n, tenant_number, (${array(tenants)})[tenant_number] AS tenant_id, subject_number, action, execution, same_content,
           (1 + floor(share_of_time * ${VERSIONS}))::integer AS action_version, uniqueness,
           ${end} - make_interval(hours => ${HOURS}) * (1 - share_of_time) AS received_at, period,
           CASE WHEN execution <> 'transactional' AND uniqueness = 'none' AND ending_chance < 0.008 THEN
                  CASE WHEN ending_chance < 0.002 AND execution = 'caller' THEN 'in_flight' WHEN ending_chance < 0.005 THEN 'unknown' ELSE 'failed' END
                WHEN ending_chance > 1 - refused THEN 'refused' ELSE 'applied' END AS ending,
           reasons[1 + floor(pg_temp.chance(n, 'reason') * cardinality(reasons))::integer] AS own_reason,
           execution = 'caller' AND uniqueness = 'none' AND pg_temp.chance(n, 'reclaim') < 0.01 AS may_be_reclaimed
      FROM drawn
      JOIN (VALUES ${actionValues()})
           AS kind(from_share, to_share, action, execution, same_content, uniqueness, period, refused, reasons)
        ON action_chance >= from_share AND action_chance < to_share
  ), timed AS (
    SELECT *, to_char(received_at AT TIME ZONE 'UTC', period) AS reporting_period,
           may_be_reclaimed AND ending IN ('applied', 'refused') AS is_reclaimed,
           CASE WHEN ending IN ('applied', 'refused') THEN received_at + make_interval(secs => CASE
             WHEN execution = 'transactional' THEN CASE ending WHEN 'applied' THEN 0 ELSE 0.0003 END
             WHEN may_be_reclaimed THEN ${byVersion('leaseSeconds')} + 4
             ELSE 0.2 + 20 * power(pg_temp.chance(n, 'work'), 4) END) END AS recorded_at
      FROM acted
  ), placed AS (
    SELECT *, CASE uniqueness WHEN 'subject' THEN '' WHEN 'subject-and-period' THEN reporting_period END AS place FROM timed
  ), rivals AS (
    SELECT *, first_value(n) OVER rivals AS first_n, first_value(received_at) OVER rivals AS first_received_at,
           first_value(recorded_at) OVER rivals AS first_recorded_at
      FROM placed
    WINDOW rivals AS (PARTITION BY tenant_number, action, place, CASE WHEN place IS NULL THEN n ELSE subject_number END, ending ORDER BY n)
  )
  SELECT n, tenant_id, tenant_number, action, action_version, execution, same_content, reporting_period, place, received_at,
         (ARRAY['case', 'customer', 'order'])[1 + subject_number % 3] AS subject_type, 'C-' || lpad(subject_number::text, 8, '0') AS subject_id,
         CASE WHEN is_loser THEN 'refused' ELSE ending END AS ending,
         CASE WHEN is_loser THEN 'duplicate-subject' WHEN ending = 'refused' THEN own_reason END AS reason,
         CASE WHEN is_loser THEN greatest(received_at, first_recorded_at) + interval '300 microseconds' ELSE recorded_at END AS recorded_at,
         CASE WHEN is_loser THEN pg_temp.id(first_received_at, first_n, 'decision') END AS winner_decision_id,
         CASE WHEN is_loser THEN first_recorded_at END AS winner_recorded_at,
         execution <> 'transactional' AND NOT is_loser AS is_leased, is_reclaimed,
         ${byVersion('leaseSeconds')} AS lease_seconds, make_interval(secs => 86400 * ${byVersion('responseRetentionDays')}) AS retention
    FROM rivals, LATERAL (SELECT ending = 'applied' AND first_n < n AS is_loser) verdict;
  ALTER TABLE fate ADD PRIMARY KEY (n);
  ANALYZE fate;`;
}

const drawnOf = (what, values) => `(${array(values)})[pg_temp.zipf(n, '${what}', ${values.length})]`;

/** The decisions of a stretch in full, with all that is hashed: what each table then takes its columns from. */
export const decisionsSql = (from, to) => `
  CREATE TEMP TABLE whole ON COMMIT DROP AS
  SELECT h.*, CASE key_source WHEN 'client' THEN 'wf-' || n ELSE content_key(tenant_id, content_hash) END AS idem_key
    FROM (
      SELECT t.*, substr(sha256(convert_to(inputs, 'UTF8')), 1, 20) AS content_hash,
             sha256(convert_to('{"inputs":' || inputs || ',"note":' || coalesce(to_json(note)::text, 'null') || '}', 'UTF8')) AS fingerprint
        FROM (
          SELECT m.*, format(
                   '{"action":"%s","model":{"id":"%s","version":"%s"},"params":{"amount":"%s","currency":"EUR","reference":"ref-%s"%s},'
                   '"policyVersion":"%s","promptTemplateSha256":"%s","retrievalSnapshotId":"%s","subject":{"id":"%s","type":"%s"},"tenantId":"%s"}',
                   action, model_id, model_version, amount, n, ',"reportingPeriod":"' || reporting_period || '"',
                   policy_version, encode(prompt_template_sha256, 'hex'), retrieval_snapshot_id, subject_id, subject_type, tenant_id) AS inputs
            FROM (
              SELECT f.*, pg_temp.id(received_at, n, 'decision') AS decision_id, pg_temp.id(recorded_at, n, 'effect') AS effect_id,
                     pg_temp.id(recorded_at, n, 'entry') AS ledger_entry_id,
                     pg_temp.id(received_at, n, 'request')::text AS request_id,
                     CASE WHEN pg_temp.chance(n, 'key') < 0.3 THEN 'client' ELSE 'content' END AS key_source,
                     ${credentialId('tenant_id', `(1 + floor(pg_temp.chance(n, 'credential') * ${ORCHESTRATORS}))`)} AS credential_id,
                     ${drawnOf(
                       'model',
                       MODELS.map(([id]) => id),
                     )} AS model_id,
                     ${drawnOf(
                       'model',
                       MODELS.map(([, version]) => version),
                     )} AS model_version,
                     sha256(convert_to('template ' || pg_temp.zipf(n, 'template', 40), 'UTF8')) AS prompt_template_sha256,
                     'rs-' || to_char(received_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS retrieval_snapshot_id,
                     'pol-' || to_char(received_at AT TIME ZONE 'UTC', 'YYYY-"Q"Q') AS policy_version,
                     (500 * pg_temp.chance(n, 'amount'))::numeric(8, 2) AS amount,
                     CASE WHEN pg_temp.chance(n, 'note') < 0.4 THEN 'agreed with the ' || subject_type || ' by telephone' END AS note,
                     CASE execution WHEN 'transactional' THEN '{}' ELSE '{"reference":"re_' || n || '"}' END AS result,
                     CASE execution WHEN 'caller' THEN 're_' || n END AS external_ref,
                     jsonb_build_object('runId', 'run-' || tenant_number || '-' || n / 16, 'stepId', 'step-' || n % 16,
                                        'toolCallId', 'call_' || n, 'attempt', 1) AS evidence
                FROM fate f
               WHERE n BETWEEN ${from} AND ${to}
              OFFSET 0) m
          OFFSET 0) t
      OFFSET 0) h;
  ANALYZE whole;`;
