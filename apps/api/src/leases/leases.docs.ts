import { Documented, type ProblemDoc } from '../http/index.js';
import { CompletionRequest, FailureRequest, LeaseRequest, ResolutionRequest } from './leases.dto.js';

const DECISION_ID = '0199c1f0-6b3a-7c52-a1de-5b8c1f0e2d41';
const ENTRY_ID = '0199c1f0-6b3a-7c53-8f10-7a6b5c4d3e2f';
const EFFECT_ID = '0199c1f0-6b3a-7c54-b0a1-2c3d4e5f6a7b';
const KEY = 'dk_demo_113056fb1a9f4af2f493e381d325b9759f004342';
const TOKEN = '1.Zk3v0tQm8xB1nC5yD7wE9aF2gH4jK6lM0pR8sT1uVwX';
const RECORDED_AT = '2026-11-30T17:36:04.123456Z';

const ID = { name: 'decisionId', description: 'The decision that the lease is for.', example: DECISION_ID };

const COMPLETED = {
  decisionId: DECISION_ID,
  key: KEY,
  keySource: 'content',
  contentKey: KEY,
  state: 'completed',
  outcome: { status: 'applied', result: { refundId: 're_93' } },
  effect: { effectId: EFFECT_ID, kind: 'payment.refund', status: 'applied', externalRef: 're_93' },
  ledgerEntryId: ENTRY_ID,
  recordedAt: RECORDED_AT,
};

const NOT_FOUND: ProblemDoc = { code: 'not-found', detail: 'There is no such decision.' };
const LEASE_LOST: ProblemDoc = {
  code: 'lease-lost',
  detail: 'The lease is held by another, or has ended. Do not run the effect; look at the decision.',
  members: { decisionId: DECISION_ID, state: 'in_flight' },
};
const MISMATCH: ProblemDoc = {
  code: 'fingerprint-mismatch',
  detail: `This key stands for another request. Decision ${DECISION_ID} was made under it.`,
  members: { decisionId: DECISION_ID, state: 'completed' },
};
const REFUSED: ProblemDoc = {
  code: 'refused',
  detail: 'The card was closed.',
  members: {
    decisionId: DECISION_ID,
    key: KEY,
    ledgerEntryId: ENTRY_ID,
    reason: 'card-closed',
    recordedAt: RECORDED_AT,
  },
};

export const RenewDoc = (): MethodDecorator =>
  Documented({
    id: 'renewLease',
    summary: 'Keep a lease',
    description: 'Prolongs the lease by its length, from now on the clock of the database. Renew at a third of it.',
    roles: ['orchestrator'],
    params: [ID],
    request: { type: LeaseRequest, examples: { 'the token of the claim': { leaseToken: TOKEN } } },
    answers: [
      {
        status: 200,
        description: 'Until when it is held now.',
        example: { lockedUntil: '2026-11-30T17:36:34.123456Z' },
      },
    ],
    problems: [NOT_FOUND, LEASE_LOST],
  });

export const CompleteDoc = (): MethodDecorator =>
  Documented({
    id: 'completeDecision',
    summary: 'Report how the effect ended',
    description:
      'Records the outcome: effect, ledger entry and response in one transaction, in which the fencing number is compared. The last holder may report also after its time, as long as nobody has reclaimed. The same report again gets the same answer.',
    roles: ['orchestrator'],
    params: [ID],
    request: {
      type: CompletionRequest,
      examples: {
        'it happened': {
          leaseToken: TOKEN,
          outcome: { status: 'applied', result: { refundId: 're_93' }, externalRef: 're_93' },
        },
        'it was refused': {
          leaseToken: TOKEN,
          outcome: { status: 'refused', reason: 'card-closed', detail: 'The card was closed.' },
        },
      },
    },
    answers: [{ status: 200, description: 'Recorded as applied.', example: COMPLETED }],
    problems: [NOT_FOUND, REFUSED, LEASE_LOST, MISMATCH],
  });

export const FailDoc = (): MethodDecorator =>
  Documented({
    id: 'failDecision',
    summary: 'Report that the effect did not end',
    description:
      '`effect: "none"`: surely nothing happened; the key, the subject and the content are free, and the next request runs again. `effect: "unknown"`: nobody knows; it is never run again by machine.',
    roles: ['orchestrator'],
    params: [ID],
    request: {
      type: FailureRequest,
      examples: { 'nothing happened': { leaseToken: TOKEN, reason: 'connection refused', effect: 'none' } },
    },
    answers: [
      {
        status: 200,
        description: 'How the decision stands now.',
        example: { decisionId: DECISION_ID, state: 'failed' },
      },
    ],
    problems: [NOT_FOUND, LEASE_LOST],
  });

export const ResolveDoc = (): MethodDecorator =>
  Documented({
    id: 'resolveDecision',
    summary: 'Resolve what is unknown',
    description:
      'A person has looked at the other system: the effect happened, or was refused (an outcome, recorded like a completion), or nothing happened (a release: the key may run again).',
    roles: ['admin'],
    params: [ID],
    request: {
      type: ResolutionRequest,
      examples: {
        'it happened': { outcome: { status: 'applied', result: { refundId: 're_93' }, externalRef: 're_93' } },
        'nothing happened': { release: true, reason: 'the provider has no such payment' },
      },
    },
    answers: [
      {
        status: 200,
        description: 'The outcome that is recorded; for a release, how the decision stands.',
        example: COMPLETED,
      },
    ],
    problems: [
      NOT_FOUND,
      REFUSED,
      MISMATCH,
      {
        code: 'not-unknown',
        detail: 'The decision is not unknown, so there is nothing to resolve.',
        members: { decisionId: DECISION_ID, state: 'completed' },
      },
    ],
  });
