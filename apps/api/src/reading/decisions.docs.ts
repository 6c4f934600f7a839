import type { Role } from '#access';
import { APPLIED, CONTENT_KEY, DECISION_ID, ENTRY_ID, INPUTS, RECORDED_AT, REQUEST, ROW } from '../decisions/sample.js';
import { Documented } from '../http/index.js';
import { DocumentedWithQuestions } from './questions/questions.js';

const READERS: readonly Role[] = ['admin', 'auditor', 'orchestrator'];

const AUDITORS: readonly Role[] = ['admin', 'auditor'];

const NOT_FOUND = { code: 'not-found', detail: 'There is no such decision.' } as const;

export const ListDecisionsDoc = (): MethodDecorator =>
  DocumentedWithQuestions({
    id: 'listDecisions',
    takesQuery: true,
    summary: 'What was decided',
    description:
      'The decisions that all the given filters hold for, by the time of recording. A parameter that is unknown, empty or given twice is refused, so a list is never wider than it was asked for. Follow `nextCursor` until it is null: every decision that was there when the walk began comes exactly once, whatever is recorded meanwhile.',
    roles: READERS,
    isReading: true,
    answers: [{ status: 200, description: 'A page of decisions.', example: { items: [ROW], nextCursor: null } }],
    problems: [
      {
        code: 'validation-failed',
        detail: 'colour: is not a member of this request',
        members: { errors: [{ pointer: 'colour', detail: 'is not a member of this request' }] },
      },
    ],
  });

export const CountDecisionsDoc = (): MethodDecorator =>
  DocumentedWithQuestions({
    id: 'countDecisions',
    takesQuery: true,
    isReading: true,
    summary: 'How many decisions, by anything',
    description:
      'Counts what the list would show for the same filters: keys, so a decision that was tried ten times counts once. `groupBy` splits the count by one or more names. The day and the month are those of recording, in UTC; what has no outcome yet has none.',
    roles: AUDITORS,
    answers: [
      {
        status: 200,
        description: 'The count.',
        example: {
          total: 1284,
          groups: [
            { action: 'refund.create', outcome: 'applied', count: 1201 },
            { action: 'refund.create', outcome: 'refused', count: 83 },
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

export const GetDecisionDoc = (): MethodDecorator =>
  DocumentedWithQuestions({
    id: 'getDecision',
    summary: 'One decision, in its three views',
    description:
      'The request as it was hashed, the effect, and the ledger entry; how often the request arrived and what became of each arrival; and the key in the forms in which it is passed on to other systems.',
    roles: READERS,
    isReading: true,
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
    isReading: true,
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
