import { credentialId, ORCHESTRATORS } from './fates.mjs';
import { ACTIONS, literal, rulesText, VERSIONS } from './inventory.mjs';

/** Tenants, who calls for them, and what they may decide. Nobody has the tokens: the hashes are of what nobody has seen. */
export function inventorySql(tenants, until, hours) {
  const begin = `('${until}'::timestamptz - make_interval(hours => ${hours}))`;
  const versions = ACTIONS.flatMap((action) =>
    Array.from(
      { length: VERSIONS },
      (_, i) => `(${literal(action.action)}, ${i + 1}, ${literal(rulesText(action, i + 1))})`,
    ),
  );
  return `
  INSERT INTO tenant (tenant_id, created_at) SELECT t, ${begin} FROM unnest(${arrayOf(tenants)}) t
  ON CONFLICT ON CONSTRAINT tenant_pkey DO NOTHING;
  INSERT INTO credential (tenant_id, credential_id, role, name, secret_sha256, created_at)
  SELECT t, ${credentialId('t', 'k')}, 'orchestrator', 'orchestrator ' || k, sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), ${begin}
    FROM unnest(${arrayOf(tenants)}) t, generate_series(1, ${ORCHESTRATORS}) k;
  INSERT INTO action_version (tenant_id, action, version, rules, created_at)
  SELECT t, action, version, rules, ${begin} + make_interval(hours => ${hours}) * (version - 1) / ${VERSIONS}
    FROM unnest(${arrayOf(tenants)}) t, (VALUES ${versions.join(',\n')}) AS v(action, version, rules);`;
}

const arrayOf = (texts) => `ARRAY[${texts.map(literal).join(', ')}]`;

const refusal = (code, title, members) =>
  `format('{"type":"urn:decision-ledger:problem:${code}","title":"${title}","status":409,"detail":"%s","code":"${code}","retryable":false,` +
  `"requestId":"%s","decisionId":"%s","key":"%s","ledgerEntryId":"%s"${members}}'`;

/** The bytes of the refusals, which name the winner where there is one. The decisions of the stretch must be there. */
export const refusalsSql = `
  CREATE TEMP TABLE refusal ON COMMIT DROP AS
  SELECT w.n, CASE WHEN w.winner_decision_id IS NULL
    THEN ${refusal('refused', 'The effect was refused by its own rule', ',"reason":"%s","recordedAt":"%s"')},
           CASE execution WHEN 'transactional' THEN 'The rules of ' || w.action || ' say no.'
                          WHEN 'caller' THEN 'The effect was refused where it was to happen.'
                          ELSE 'The system that the effect was dispatched to answered ' || substr(w.reason, 12) || '.' END,
           w.request_id, w.decision_id, w.idem_key, w.ledger_entry_id, w.reason, rfc3339(w.recorded_at))
    ELSE ${refusal(
      'duplicate-subject',
      'The subject has this effect already',
      ',"recordedAt":"%s","winner":{"decisionId":"%s","key":"%s","recordedAt":"%s"}',
    )},
           w.action || ' has been applied to this subject' || CASE w.place WHEN '' THEN '' ELSE ' for ' || w.place END || ' by another decision, the winner.',
           w.request_id, w.decision_id, w.idem_key, w.ledger_entry_id, rfc3339(w.recorded_at),
           w.winner_decision_id, x.idem_key, rfc3339(w.winner_recorded_at)) END AS body
    FROM whole w
    LEFT JOIN LATERAL (SELECT d.idem_key FROM decision_record d WHERE d.tenant_id = w.tenant_id AND d.decision_id = w.winner_decision_id OFFSET 0) x ON true
   WHERE w.ending = 'refused';
  ANALYZE refusal;`;

/** The rows of the stretch, table by table, in the order in which their foreign keys want them. */
export const writes = (until) => ({
  decision_record: `
  INSERT INTO decision_record
    (tenant_id, decision_id, idem_key, key_source, content_hash, content_once, fingerprint, action, action_version, subject_type, subject_id,
     reporting_period, model_id, model_version, prompt_template_sha256, retrieval_snapshot_id, policy_version, inputs, note, credential_id, received_at)
  SELECT tenant_id, decision_id, idem_key, key_source, content_hash, CASE WHEN execution = 'transactional' AND same_content <> 'allow' THEN true END,
         fingerprint, action, action_version, subject_type, subject_id, reporting_period, model_id, model_version, prompt_template_sha256,
         retrieval_snapshot_id, policy_version, inputs, note, credential_id, received_at
    FROM whole ORDER BY n`,

  content_hold: `
  INSERT INTO content_hold (tenant_id, content_hash, decision_id)
  SELECT tenant_id, content_hash, decision_id FROM whole WHERE execution <> 'transactional' AND same_content <> 'allow' AND ending <> 'failed' ORDER BY n`,

  effect: `
  INSERT INTO effect (tenant_id, effect_id, decision_id, action, subject_type, subject_id, reporting_period, place, applied_at)
  SELECT tenant_id, effect_id, decision_id, action, subject_type, subject_id, reporting_period, place, recorded_at
    FROM whole WHERE ending = 'applied' ORDER BY n`,

  ledger_entry: `
  INSERT INTO ledger_entry
    (tenant_id, ledger_entry_id, idem_key, decision_id, outcome, reason, winner_decision_id, effect_id, result, refusal, external_ref,
     credential_id, recorded_at, response_expires_at)
  SELECT tenant_id, ledger_entry_id, idem_key, decision_id, ending, reason, winner_decision_id, CASE ending WHEN 'applied' THEN effect_id END,
         CASE ending WHEN 'applied' THEN result END, body, CASE ending WHEN 'applied' THEN external_ref END,
         CASE WHEN is_leased AND execution = 'dispatched' THEN 'worker' ELSE credential_id END, recorded_at, recorded_at + retention
    FROM whole LEFT JOIN refusal USING (n) WHERE recorded_at IS NOT NULL ORDER BY n`,

  // Stored responses whose time is over by the end of the population have been pruned.
  idempotency_record: `
  INSERT INTO idempotency_record
    (tenant_id, idem_key, key_source, fingerprint, decision_id, status, locked_until, response_status, response_body, created_at, expires_at,
     lease_number, lease_seconds, lease_token_sha256, reclaims, on_expired_lease, conclusion_sha256)
  SELECT tenant_id, idem_key, key_source, fingerprint, decision_id, CASE WHEN recorded_at IS NULL THEN ending ELSE 'completed' END,
         CASE ending WHEN 'in_flight' THEN received_at + make_interval(secs => lease_seconds) END,
         CASE ending WHEN 'applied' THEN 201 WHEN 'refused' THEN 409 END,
         CASE ending WHEN 'applied' THEN format(
           '{"decisionId":"%s","key":"%s","keySource":"%s","contentKey":"%s","state":"completed","outcome":{"status":"applied","result":%s},'
           '"effect":{"effectId":"%s","kind":"%s","status":"applied"%s},"ledgerEntryId":"%s","recordedAt":"%s"}',
           decision_id, idem_key, key_source, content_key(tenant_id, content_hash), result, effect_id, action,
           ',"externalRef":"' || external_ref || '"', ledger_entry_id, rfc3339(recorded_at)) ELSE body END,
         received_at, recorded_at + retention,
         CASE WHEN NOT is_leased THEN 0 WHEN is_reclaimed OR execution = 'dispatched' THEN 2 ELSE 1 END,
         CASE WHEN is_leased THEN lease_seconds END, CASE WHEN is_leased THEN sha256(uuid_send(decision_id)) END, is_reclaimed::integer,
         CASE WHEN is_leased THEN 'reclaim' END,
         CASE WHEN is_leased AND (recorded_at IS NOT NULL OR execution = 'caller' AND ending <> 'in_flight') THEN sha256(convert_to(ending, 'UTF8')) END
    FROM whole LEFT JOIN refusal USING (n)
   WHERE recorded_at IS NULL OR recorded_at + retention > '${until}' ORDER BY n`,
});
