import type { Caller } from '#access';
import { checkKey, InvalidIdempotencyKey, parseIdempotencyKey } from '#key';
import { decisionRequest, type DecisionRequest, type Patience } from '#ledger';
import { Problem } from '#problem';
import type { Evidence, RegisterDecisionRequest } from './decisions.dto.js';

export const IDEMPOTENCY_KEY_HEADER = 'idempotency-key';

const MS_A_SECOND = 1000;
const DEFAULT_WAIT_S = 2;
const LONGEST_WAIT_S = 30;
const PREFER_WAIT = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?=$|[,;])/i;

/**
 * The key of an `Idempotency-Key` header, or null without one.
 *
 * @param rawHeaders as Node gives them: names and values in turn, before lines of one name are joined
 * @throws Problem `invalid-idempotency-key`
 */
export function keyOfHeader(rawHeaders: readonly string[]): string | null {
  const values = rawHeaders.filter(
    (_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === IDEMPOTENCY_KEY_HEADER,
  );
  const [value] = values;
  if (value === undefined) return null;
  if (values.length > 1)
    throw new Problem('invalid-idempotency-key', 'The Idempotency-Key header came more than once.');
  return checkedKey(() => parseIdempotencyKey(value));
}

/** The key that a batch item carries. @throws Problem `invalid-idempotency-key` */
export function keyOfItem(key: string | undefined): string | null {
  return key === undefined ? null : checkedKey(() => checkKey(key));
}

function checkedKey(read: () => string): string {
  try {
    return read();
  } catch (error) {
    if (error instanceof InvalidIdempotencyKey) throw new Problem('invalid-idempotency-key', error.detail);
    throw error;
  }
}

/**
 * How long a request waits, from `Prefer: wait=N` (RFC 7240, section 4.3); a preference that cannot be read is none. Without
 * one it waits for a twin, but not for an effect that it has queued itself.
 */
export function patienceOf(prefer: string | string[] | undefined): Patience {
  const [, seconds] = PREFER_WAIT.exec([prefer ?? ''].flat().join(',')) ?? [];
  const waitMs = (asked: number): number => MS_A_SECOND * Math.min(asked, LONGEST_WAIT_S);
  return { twinMs: waitMs(Number(seconds ?? DEFAULT_WAIT_S)), outcomeMs: waitMs(Number(seconds ?? 0)) };
}

/** @throws Problem `tenant-mismatch`, `key-derivation-mismatch` */
export function readDecision(
  caller: Caller,
  { inputs, note, evidence, leaseNonce }: RegisterDecisionRequest,
  clientKey: string | null,
): DecisionRequest {
  if (inputs.tenantId !== undefined && inputs.tenantId !== caller.tenant) {
    throw new Problem('tenant-mismatch', 'inputs.tenantId is not the tenant of the credential. It may be left out.');
  }
  const { subject, action, params, model, promptTemplateSha256, retrievalSnapshotId, policyVersion } = inputs;
  return decisionRequest(
    {
      tenantId: caller.tenant,
      subject: { type: subject.type, id: subject.id },
      action,
      params,
      model: { id: model.id, version: model.version },
      promptTemplateSha256,
      retrievalSnapshotId,
      policyVersion,
    },
    note ?? null,
    evidenceOf(evidence),
    clientKey,
    leaseNonce ?? null,
  );
}

function evidenceOf(evidence: Evidence | undefined): Record<string, string | number> | null {
  if (evidence === undefined) return null;
  const members: Record<string, string | number> = {};
  for (const [name, value] of Object.entries(evidence))
    if (typeof value === 'string' || typeof value === 'number') members[name] = value;
  return members;
}
