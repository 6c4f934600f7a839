import { ACTION_NAME, ACTION_NAME_LENGTH } from '#actions';
import type { JsonObject } from '#key';
import { Child, Items, JsonMap, Key, Name, Sha256Hex, Text, Whole } from '../fields/index.js';

const LONG_TEXT = 4000;

export class Subject {
  @Text({ description: 'What kind of thing the decision is about.', example: 'case' })
  type: string;

  @Text({ description: 'Which one.', example: 'C-1042' })
  id: string;
}

export class Model {
  @Text({ description: 'The model that concluded.', example: 'm-1' })
  id: string;

  @Text({ description: 'Its version.', example: '2026-09-01' })
  version: string;
}

/** What defines the decision: the preimage of the content key. */
export class Inputs {
  @Text({
    description: 'The tenant. It may be left out; if it is sent, it must be that of the credential.',
    example: 'demo',
    optional: true,
  })
  tenantId?: string;

  @Child(() => Subject, { description: 'What the decision is about.' })
  subject: Subject;

  @Name({
    description: 'What is to be done: an entry of the inventory.',
    example: 'refund.create',
    pattern: ACTION_NAME,
    form: 'words of a–z, 0–9, _ and -, joined by dots',
    max: ACTION_NAME_LENGTH,
  })
  action: string;

  @JsonMap({ description: 'How it is to be done.', example: { amount: '10.00', currency: 'EUR' } })
  params: JsonObject;

  @Child(() => Model, { description: 'Who concluded.' })
  model: Model;

  @Sha256Hex({
    description: 'SHA-256 of the prompt template.',
    example: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  })
  promptTemplateSha256: string;

  @Text({ description: 'What the model was shown.', example: 'rs-14' })
  retrievalSnapshotId: string;

  @Text({ description: 'The policy under which it concluded.', example: 'pol-7' })
  policyVersion: string;
}

/** Where a try came from. In neither key nor fingerprint: a retry may bring other evidence. */
export class Evidence {
  @Text({ description: 'The durable step that sent it.', example: 'step-3', optional: true })
  stepId?: string;

  @Text({ description: 'The run that the step belongs to.', example: 'run-81', optional: true })
  runId?: string;

  @Whole({
    description: 'The how-manyth try of the step.',
    example: 1,
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    optional: true,
  })
  attempt?: number;

  @Text({ description: 'The tool call of the model.', example: 'call_9', optional: true })
  toolCallId?: string;

  @Text({
    description: 'W3C Trace Context.',
    example: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    optional: true,
  })
  traceparent?: string;

  @Text({
    description: 'Why the model decided so.',
    example: 'The parcel was lost; the policy allows a refund.',
    max: LONG_TEXT,
    optional: true,
  })
  rationale?: string;
}

export class RegisterDecisionRequest {
  @Child(() => Inputs, { description: 'What defines the decision.' })
  inputs: Inputs;

  @Text({
    description: 'Free text that goes with the action. In the fingerprint, not in the key.',
    example: 'urgent',
    max: LONG_TEXT,
    optional: true,
  })
  note?: string;

  @Child(() => Evidence, { description: 'Where this try came from.', optional: true })
  evidence?: Evidence;

  @Name({
    description:
      'For an effect outside: what the caller shows to be given the same lease again, should its answer be lost. In neither key nor fingerprint.',
    example: 'q7Jm2xVw9Lr4Tz8Nc5Bd1K',
    pattern: /^[A-Za-z0-9_-]{22,64}$/,
    form: '22–64 url-safe characters',
    max: 64,
    optional: true,
  })
  leaseNonce?: string;
}

export class BatchItemRequest extends RegisterDecisionRequest {
  @Key({
    description: 'The bare characters of the key; without it, the content key is the key.',
    example: 'order-8812-refund-1',
    optional: true,
  })
  idempotencyKey?: string;
}

const BATCH_MOST = 500;

export class RegisterBatchRequest {
  @Items(() => BatchItemRequest, {
    description: 'The decisions, each as it would be sent alone.',
    min: 1,
    max: BATCH_MOST,
  })
  decisions: unknown[];
}
