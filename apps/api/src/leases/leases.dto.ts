import type { JsonValue } from '#key';
import type { ReportedOutcome } from '#ledger';
import { validationFailed, type ProblemPlace } from '#problem';
import { Child, Json, OneOf, Text, Yes } from '../fields/index.js';

const LONG_TEXT = 4000;

export class LeaseRequest {
  @Text({
    description: 'The token of the lease, as the claim gave it.',
    example: '1.Zk3v0tQm8xB1nC5yD7wE9aF2gH4jK6lM0pR8sT1uVwX',
  })
  leaseToken: string;
}

/** How the effect ended. Which members go with which status is checked by {@link outcomeOf}. */
export class OutcomeFields {
  @OneOf({ description: 'What became of the effect.', example: 'applied', values: ['applied', 'refused'] })
  status: 'applied' | 'refused';

  @Json({
    description: 'Applied: what is to be recorded and answered.',
    example: { refundId: 're_93' },
    optional: true,
  })
  result?: JsonValue;

  @Text({ description: "Applied: the provider's reference.", example: 're_93', optional: true })
  externalRef?: string;

  @Text({ description: 'Refused: a short code for grouping and filtering.', example: 'card-closed', optional: true })
  reason?: string;

  @Text({ description: 'Refused: a sentence for the caller.', max: LONG_TEXT, optional: true })
  detail?: string;
}

export class CompletionRequest extends LeaseRequest {
  @Child(() => OutcomeFields, { description: 'How the effect ended.' })
  outcome: OutcomeFields;
}

export class FailureRequest extends LeaseRequest {
  @Text({ description: 'What happened.', example: 'connection refused' })
  reason: string;

  @OneOf({
    description: '`none`: surely nothing happened, and the key may run again. `unknown`: nobody knows, and it may not.',
    example: 'none',
    values: ['none', 'unknown'],
  })
  effect: 'none' | 'unknown';
}

export class ResolutionRequest {
  @Child(() => OutcomeFields, { description: 'How the effect ended, as a person found out.', optional: true })
  outcome?: OutcomeFields;

  @Yes({ description: 'Nothing happened: the key may run again.', optional: true })
  release?: true;

  @Text({
    description: 'For a release: how that is known.',
    example: 'the provider has no such payment',
    optional: true,
  })
  reason?: string;
}

/** @throws Problem `validation-failed` if a member belongs to the other status, or is missing */
export function outcomeOf(fields: OutcomeFields): ReportedOutcome {
  const { status, result, externalRef, reason, detail } = fields;
  const belongs = status === 'applied' ? ['status', 'result', 'externalRef'] : ['status', 'reason', 'detail'];
  const places: ProblemPlace[] = Object.entries(fields)
    .filter(([name, value]) => value !== undefined && !belongs.includes(name))
    .map(([name]) => ({ pointer: `/outcome/${name}`, detail: `does not go with "${status}"` }));
  if (status === 'applied' && result === undefined) places.push({ pointer: '/outcome/result', detail: 'is required' });
  if (status === 'refused' && reason === undefined) places.push({ pointer: '/outcome/reason', detail: 'is required' });
  if (places.length > 0) throw validationFailed(places);
  return status === 'applied'
    ? { status, result: result ?? null, ...(externalRef === undefined ? {} : { externalRef }) }
    : { status, reason: reason ?? '', ...(detail === undefined ? {} : { detail }) };
}

/** An outcome, or a release with its reason, and not both. @throws Problem `validation-failed` */
export function resolutionOf({
  outcome,
  release,
  reason,
}: ResolutionRequest): { outcome: ReportedOutcome } | { reason: string } {
  if (outcome !== undefined && release === undefined && reason === undefined) return { outcome: outcomeOf(outcome) };
  if (outcome === undefined && release !== undefined && reason !== undefined) return { reason };
  throw validationFailed([{ pointer: '', detail: 'must be either { outcome } or { release: true, reason }' }]);
}
