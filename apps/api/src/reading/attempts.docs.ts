import type { Role } from '#access';
import { DECISION_ID } from '../decisions/sample.js';
import { DocumentedWithQuestions } from './questions/questions.js';

const AUDITORS: readonly Role[] = ['admin', 'auditor'];

const ATTEMPT = {
  attemptId: '0199c1f0-6b3a-7c55-9d2e-4f5a6b7c8d9e',
  decisionId: DECISION_ID,
  key: 'order-8812-refund-1',
  action: 'refund.create',
  disposition: 'mismatch',
  won: false,
  evidence: { stepId: 'step-3', runId: 'run-81', attempt: 2, toolCallId: 'call-17' },
  requestId: '5f0b9a52-7c1e-4a53-9d1e-2f6f0c6f2b11',
  credentialId: '3f9c0a7b1d2e4f5a6b7c',
  receivedAt: '2026-11-30T17:36:02.004211Z',
  latencyMs: 1.872,
  problem: 'fingerprint-mismatch',
};

export const ListAttemptsDoc = (): MethodDecorator =>
  DocumentedWithQuestions({
    id: 'listAttempts',
    takesQuery: true,
    isReading: true,
    summary: 'Every arrival of a request',
    description:
      "The first request for a key, every retry, duplicate, conflict and report, with the evidence that it carried and what became of it. `won` marks the one that brought the recorded outcome. `recordedFrom` and `recordedTo` mean the time of arrival here; `stepId`, `runId`, `credentialId` and `disposition` are the attempt's own, all other filters its decision's.",
    roles: AUDITORS,
    answers: [{ status: 200, description: 'A page of attempts.', example: { items: [ATTEMPT], nextCursor: null } }],
    problems: [
      {
        code: 'validation-failed',
        detail: 'disposition: must be one of created, refused, replayed, …',
        members: { errors: [{ pointer: 'disposition', detail: 'must be one of created, refused, replayed, …' }] },
      },
    ],
  });

export const CountAttemptsDoc = (): MethodDecorator =>
  DocumentedWithQuestions({
    id: 'countAttempts',
    takesQuery: true,
    isReading: true,
    summary: 'How many arrivals, by anything',
    description:
      'Counts what the list would show for the same filters. The day and the month are those of arrival, in UTC. What is asked of the decision is null for an arrival that ended before a decision could be looked at.',
    roles: AUDITORS,
    answers: [
      {
        status: 200,
        description: 'The count.',
        example: {
          total: 3120,
          groups: [
            { disposition: 'created', count: 1201 },
            { disposition: 'replayed', count: 1919 },
          ],
        },
      },
    ],
    problems: [
      {
        code: 'validation-failed',
        detail: 'groupBy: must be a list, with commas and each at most once, of action, actionVersion, …',
        members: { errors: [{ pointer: 'groupBy', detail: 'must be a list of names' }] },
      },
    ],
  });
