import { Documented } from '../http/index.js';
import { RegisterBatchRequest, RegisterDecisionRequest } from './decisions.dto.js';
import { APPLIED, CLAIMED, DECISION_ID, RECORDED_AT, REFUSED_MEMBERS, REQUEST, WINNER } from './sample.js';

const OUTCOME_HEADERS = {
  Location: 'Where the decision is read.',
  'Idempotent-Replayed': '`true` if these bytes answer a retry or a duplicate. Absent the first time.',
  'Idempotency-Expires':
    'Until when the stored response is kept (HTTP date). After it the same request is answered from the ledger.',
};

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
