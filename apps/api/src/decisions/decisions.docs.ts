import type { Role } from '#access';
import { Documented } from '../http/index.js';
import { RegisterBatchRequest, RegisterDecisionRequest } from './decisions.dto.js';

const READERS: readonly Role[] = ['admin', 'auditor', 'orchestrator'];

const DECISION_ID = '0199c1f0-6b3a-7c52-a1de-5b8c1f0e2d41';
const WINNER_ID = '0199c1ef-0a11-7d03-9c44-1e2f3a4b5c6d';
const ENTRY_ID = '0199c1f0-6b3a-7c53-8f10-7a6b5c4d3e2f';
const CONTENT_KEY = 'dk_demo_113056fb1a9f4af2f493e381d325b9759f004342';
const RECORDED_AT = '2026-11-30T17:36:00.123456Z';

const INPUTS = {
  subject: { type: 'case', id: 'C-1042' },
  action: 'refund.create',
  params: { amount: '10.00', currency: 'EUR' },
  model: { id: 'm-1', version: '2026-09-01' },
  promptTemplateSha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  retrievalSnapshotId: 'rs-14',
  policyVersion: 'pol-7',
};

const REQUEST = { inputs: INPUTS, note: 'parcel lost', evidence: { stepId: 'step-3', runId: 'run-81', attempt: 1 } };

const APPLIED = {
  decisionId: DECISION_ID,
  key: CONTENT_KEY,
  keySource: 'content',
  contentKey: CONTENT_KEY,
  state: 'completed',
  outcome: { status: 'applied', result: { refundId: '0199c1f0-6b3a-7c54-b0a1-2c3d4e5f6a7b', refundedTotal: '10.00' } },
  effect: { effectId: '0199c1f0-6b3a-7c54-b0a1-2c3d4e5f6a7b', kind: 'refund.create', status: 'applied' },
  ledgerEntryId: ENTRY_ID,
  recordedAt: RECORDED_AT,
};

const CLAIMED = {
  decisionId: DECISION_ID,
  key: CONTENT_KEY,
  keySource: 'content',
  contentKey: CONTENT_KEY,
  state: 'in_flight',
  lease: {
    token: '1.Zk3v0tQm8xB1nC5yD7wE9aF2gH4jK6lM0pR8sT1uVwX',
    number: 1,
    lockedUntil: '2026-11-30T17:36:30.121001Z',
  },
  downstreamKeys: {
    key: CONTENT_KEY,
    hex40: '113056fb1a9f4af2f493e381d325b9759f004342',
    hex32: '113056fb1a9f4af2f493e381d325b975',
    uuid4: '113056fb-1a9f-4af2-b493-e381d325b975',
  },
};

const REFUSED_MEMBERS = { decisionId: DECISION_ID, key: CONTENT_KEY, ledgerEntryId: ENTRY_ID };
const WINNER = { decisionId: WINNER_ID, key: 'sar-C-1042-2026-Q3', recordedAt: '2026-10-02T08:00:00.000001Z' };

const ROW = {
  decisionId: DECISION_ID,
  key: CONTENT_KEY,
  keySource: 'content',
  contentKey: CONTENT_KEY,
  state: 'completed',
  outcome: { status: 'applied' },
  action: 'refund.create',
  actionVersion: 1,
  subject: INPUTS.subject,
  reportingPeriod: null,
  model: INPUTS.model,
  promptTemplateSha256: INPUTS.promptTemplateSha256,
  retrievalSnapshotId: INPUTS.retrievalSnapshotId,
  policyVersion: INPUTS.policyVersion,
  effectId: APPLIED.effect.effectId,
  externalRef: null,
  ledgerEntryId: ENTRY_ID,
  receivedAt: '2026-11-30T17:36:00.121001Z',
  recordedAt: RECORDED_AT,
};

const OUTCOME_HEADERS = {
  Location: 'Where the decision is read.',
  'Idempotent-Replayed': '`true` if these bytes answer a retry or a duplicate. Absent the first time.',
  'Idempotency-Expires':
    'Until when the stored response is kept (HTTP date). After it the same request is answered from the ledger.',
};

const NOT_FOUND = { code: 'not-found', detail: 'There is no such decision.' } as const;

export const RegisterDecisionDoc = (): MethodDecorator =>
  Documented({
    id: 'registerDecision',
    summary: 'Register a decision, once',
    description:
      'Records the decision, its effect and its ledger entry in one transaction, or finds what was recorded: the same key always ends in the same outcome, byte for byte. Without an `Idempotency-Key` the key is derived from the inputs. A refusal is an outcome too: it is recorded and repeated. An outage is not: nothing is kept, and the retry runs.',
    roles: ['orchestrator'],
    headers: [
      {
        name: 'Idempotency-Key',
        description:
          'A key that the caller keeps with its own durable step: an RFC 9651 String, or its characters bare. Leave it out to use the content key.',
        example: '"order-8812-refund-1"',
      },
      {
        name: 'Prefer',
        description:
          'How many seconds to wait, `wait=N`, at most 30: for a request with the same key that is under way (otherwise 2), and for the end of an effect that the worker brings about (otherwise not at all).',
        example: 'wait=5',
      },
    ],
    request: { type: RegisterDecisionRequest, examples: { 'a refund': REQUEST } },
    answers: [
      {
        status: 201,
        description: 'Applied: now, or when the key was first used.',
        example: APPLIED,
        headers: OUTCOME_HEADERS,
      },
      {
        status: 202,
        description:
          'The effect is outside and under way. `caller`: it is yours to run, under the lease. `dispatched`: the worker makes the call, and there is no `lease` member; `state` is `failed` if, within the time that you waited, it was given up and surely had no effect, so that the next request runs it again.',
        example: CLAIMED,
        headers: { Location: OUTCOME_HEADERS.Location },
      },
    ],
    problems: [
      { code: 'invalid-idempotency-key', detail: 'The key is empty.' },
      { code: 'tenant-mismatch', detail: 'inputs.tenantId is not the tenant of the credential. It may be left out.' },
      {
        code: 'duplicate-subject',
        detail: 'sar.file has been applied to this subject for 2026-Q3 by another decision, the winner.',
        members: { ...REFUSED_MEMBERS, recordedAt: RECORDED_AT, winner: WINNER },
      },
      {
        code: 'refused',
        detail: 'The refunds of this case would exceed the total of its order, 100.00.',
        members: { ...REFUSED_MEMBERS, reason: 'exceeds-order-total', recordedAt: RECORDED_AT },
      },
      {
        code: 'same-content',
        detail: 'The same decision was made under another key, the winner; this key stays unused.',
        members: { winner: WINNER },
      },
      {
        code: 'in-flight',
        detail: 'A request that this one must wait for is under way. Send the same request again.',
        members: { state: 'in_flight' },
      },
      {
        code: 'fingerprint-mismatch',
        detail: `This key stands for another request. Decision ${DECISION_ID} was made under it.`,
        members: { decisionId: DECISION_ID, state: 'completed' },
      },
      {
        code: 'key-derivation-mismatch',
        detail:
          'A key that begins with dk_ is derived from the inputs, and these inputs give another one. Derive it again, or send none.',
      },
      { code: 'unknown-action', detail: 'The inventory has no action refund.create. An admin can put it there.' },
      {
        code: 'outcome-unknown',
        detail:
          'Nobody knows whether the effect happened. It is not run again until an admin has resolved the decision.',
        members: { decisionId: DECISION_ID, state: 'unknown' },
      },
    ],
  });

export const RegisterBatchDoc = (): MethodDecorator =>
  Documented({
    id: 'registerDecisions',
    summary: 'Register up to 500 decisions',
    description:
      'Each item ends as it would have ended alone, in order; a bad item does not fail its neighbours. The same key twice behaves as two requests, one after the other. An item carries its key in `idempotencyKey`; a header is refused.',
    roles: ['orchestrator'],
    request: {
      type: RegisterBatchRequest,
      examples: {
        'one item with a key of its own': { decisions: [{ idempotencyKey: 'order-8812-refund-1', ...REQUEST }] },
      },
    },
    answers: [
      {
        status: 200,
        description: 'For each item the status and the body that the single route would have given.',
        example: { items: [{ status: 201, replayed: false, body: APPLIED }] },
      },
    ],
    problems: [
      {
        code: 'invalid-idempotency-key',
        detail: 'A batch has a key for each item, in idempotencyKey, and none in the header.',
      },
    ],
  });

export const ListDecisionsDoc = (): MethodDecorator =>
  Documented({
    id: 'listDecisions',
    takesQuery: true,
    summary: 'What was decided',
    description:
      'The decisions that all the given filters hold for, by the time of recording. A parameter that is unknown, empty or given twice is refused, so a list is never wider than it was asked for. Follow `nextCursor` until it is null: every decision that was there when the walk began comes exactly once, whatever is recorded meanwhile.',
    roles: READERS,
    answers: [{ status: 200, description: 'A page of decisions.', example: { items: [ROW], nextCursor: null } }],
    problems: [
      {
        code: 'validation-failed',
        detail: 'colour: is not a member of this request',
        members: { errors: [{ pointer: 'colour', detail: 'is not a member of this request' }] },
      },
    ],
  });

export const GetDecisionDoc = (): MethodDecorator =>
  Documented({
    id: 'getDecision',
    summary: 'One decision, in its three views',
    description:
      'The request as it was hashed, the effect, and the ledger entry; how often the request arrived and what became of each arrival; and the key in the forms in which it is passed on to other systems.',
    roles: READERS,
    params: [{ name: 'decisionId', description: 'The id of the decision.', example: DECISION_ID }],
    answers: [
      {
        status: 200,
        description: 'The decision.',
        example: {
          ...ROW,
          fingerprint: '8494ad7ae90ef9d055250ec98d5bfd2cef02aa85994c17f7c592f444657dad8e',
          request: {
            inputs: { ...INPUTS, tenantId: 'demo' },
            note: REQUEST.note,
            firstEvidence: REQUEST.evidence,
            receivedAt: ROW.receivedAt,
          },
          effect: { ...APPLIED.effect, result: APPLIED.outcome.result },
          ledgerEntry: {
            ledgerEntryId: ENTRY_ID,
            outcome: 'applied',
            reason: null,
            winnerDecisionId: null,
            recordedAt: RECORDED_AT,
            recordedBy: '3f9c0a7b1d2e4f5a6b7c',
            responseExpiresAt: '2027-02-28T17:36:00.123456Z',
          },
          attempts: { total: 3, byDisposition: { created: 1, replayed: 2 } },
          downstreamKeys: {
            key: CONTENT_KEY,
            hex40: '113056fb1a9f4af2f493e381d325b9759f004342',
            hex32: '113056fb1a9f4af2f493e381d325b975',
            uuid4: '113056fb-1a9f-4af2-b493-e381d325b975',
          },
        },
      },
    ],
    problems: [NOT_FOUND],
  });

export const GetRecordDoc = (): MethodDecorator =>
  Documented({
    id: 'getIdempotencyRecord',
    summary: 'What a key stands for',
    description:
      'The state of a key, the decision it ends in, and until when its response is kept. An `expired` key still stands for its decision: it is answered from the ledger.',
    roles: READERS,
    params: [{ name: 'key', description: 'The key, percent-encoded.', example: 'order-8812-refund-1' }],
    answers: [
      {
        status: 200,
        description: 'The record.',
        example: {
          key: 'order-8812-refund-1',
          keySource: 'client',
          status: 'completed',
          fingerprint: '8494ad7ae90ef9d055250ec98d5bfd2cef02aa85994c17f7c592f444657dad8e',
          decisionId: DECISION_ID,
          lockedUntil: null,
          createdAt: '2026-11-30T17:36:00.121001Z',
          expiresAt: '2027-02-28T17:36:00.123456Z',
        },
      },
    ],
    problems: [{ code: 'not-found', detail: 'There is no record of such a key.' }],
  });
