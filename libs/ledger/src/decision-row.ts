import { isReportingPeriod, type Action } from '#actions';
import type { DecidedEffect, EffectOutcome } from '#effects';
import { canonicalJson } from '#key';
import { newId } from './new-id.js';
import type { Arrival, DecisionRequest } from './decision-request.js';
import { appliedHead, duplicateSubjectHead, refusalHead } from './response.js';

const SECONDS_A_DAY = 86_400;
/** The first 20 bytes of the content's SHA-256: the 40 hex digits that the content key shows. */
const CONTENT_HASH_BYTES = 20;

/** A declarative effect writes nothing beside its own row, so its result has nothing to add. */
const DECLARATIVE_RESULT = '{}';

/** The row in which a request reaches the database: the composite type `decision_row` of the migrations, by member. */
export type DecisionRow = Record<string, unknown> & { decision_id: string; effect_id: string; ledger_entry_id: string };

const bytea = (bytes: Buffer): string => `\\x${bytes.toString('hex')}`;

/** The period of a decision: whatever action it is for, if its params state a well-formed one. */
function reportingPeriodOf(request: DecisionRequest): string | null {
  const period = request.inputs.params['reportingPeriod'];
  return typeof period === 'string' && isReportingPeriod(period) ? period : null;
}

/** What the effect takes so that no other may: nothing, the subject (''), or the subject in a period. */
function placeOf(action: Action, request: DecisionRequest): string | null {
  switch (action.uniqueness) {
    case 'none':
      return null;
    case 'subject':
      return '';
    case 'subject-and-period':
      return reportingPeriodOf(request);
    default:
      return action.uniqueness satisfies never;
  }
}

/** A request as it arrived: enough to be told what already stands, not enough to be recorded. */
export function arrivalRow(arrival: Arrival, request: DecisionRequest, ordinal: number): DecisionRow {
  return {
    ordinal,
    idem_key: request.key,
    key_source: request.keySource,
    content_hash: bytea(request.contentSha256.subarray(0, CONTENT_HASH_BYTES)),
    fingerprint: bytea(request.fingerprint),
    decision_id: newId(),
    effect_id: newId(),
    ledger_entry_id: newId(),
    attempt_id: newId(),
    action: request.inputs.action,
    evidence: request.evidence,
    credential_id: arrival.caller.credentialId,
    request_id: arrival.requestId,
    elapsed_ms: performance.now() - arrival.startedAt,
  };
}

/** A request that may be recorded, under the rules of its action. What an effect gives is not known yet. */
export function decisionRow(
  arrival: Arrival,
  request: DecisionRequest,
  ordinal: number,
  action: Action,
  retentionSeconds: number | null,
): DecisionRow {
  const row = arrivalRow(arrival, request, ordinal);
  const place = placeOf(action, request);
  return {
    ...row,
    action_version: action.version,
    same_content: action.sameContent,
    place,
    subject_type: request.inputs.subject.type,
    subject_id: request.inputs.subject.id,
    reporting_period: reportingPeriodOf(request),
    model_id: request.inputs.model.id,
    model_version: request.inputs.model.version,
    prompt_template_sha256: `\\x${request.inputs.promptTemplateSha256}`,
    retrieval_snapshot_id: request.inputs.retrievalSnapshotId,
    policy_version: request.inputs.policyVersion,
    inputs: request.canonicalInputs,
    note: request.note,
    retention_seconds: retentionSeconds ?? action.responseRetentionDays * SECONDS_A_DAY,
    refused_head:
      place === null
        ? null
        : duplicateSubjectHead(refusedParts(row, request), request.inputs.action, place, arrival.requestId),
  };
}

/** The row of a declarative effect, whose answer is known before it is written. */
export function declarativeRow(row: DecisionRow, request: DecisionRequest): DecisionRow {
  return withResult(row, request, DECLARATIVE_RESULT);
}

/** The row of an effect whose handler has spoken. */
export function outcomeRow(
  row: DecisionRow,
  request: DecisionRequest,
  outcome: EffectOutcome,
  requestId: string,
): DecisionRow {
  if (outcome.status === 'applied') return withResult(row, request, canonicalJson(outcome.result));
  const { reason, detail } = outcome;
  return {
    ...row,
    refusal_reason: reason,
    refused_head: refusalHead(refusedParts(row, request), reason, detail, requestId),
  };
}

/** What a handler is given to apply. */
export function decidedEffect(tenant: string, row: DecisionRow, request: DecisionRequest): DecidedEffect {
  const { decision_id: decisionId, effect_id: effectId } = row;
  return { tenant, decisionId, effectId, key: request.key, inputs: request.inputs, note: request.note };
}

function withResult(row: DecisionRow, request: DecisionRequest, result: string): DecisionRow {
  const { decision_id: decisionId, effect_id: effectId, ledger_entry_id: ledgerEntryId } = row;
  const { key, keySource, contentKey, inputs } = request;
  return {
    ...row,
    result,
    applied_head: appliedHead({
      decisionId,
      effectId,
      ledgerEntryId,
      key,
      keySource,
      contentKey,
      action: inputs.action,
      result,
      externalRef: null,
    }),
  };
}

function refusedParts(
  row: DecisionRow,
  request: DecisionRequest,
): { decisionId: string; key: string; ledgerEntryId: string } {
  return { decisionId: row.decision_id, key: request.key, ledgerEntryId: row.ledger_entry_id };
}
