import type { Role } from '#access';
import { DocumentedWithQuestions } from './questions/questions.js';

const AUDITORS: readonly Role[] = ['admin', 'auditor'];

export const ListAccessesDoc = (): MethodDecorator =>
  DocumentedWithQuestions({
    id: 'listAccesses',
    takesQuery: true,
    isReading: true,
    summary: 'Who looked at these records',
    description:
      'Every reading and export of decisions, attempts, entries, keys, versions of actions, and of this log: by which credential, of what, and how many rows were sent. It is on record before the first byte of the answer; `rows` and `finished` are added at its end, so an export that was broken off shows.',
    roles: AUDITORS,
    answers: [
      {
        status: 200,
        description: 'A page of accesses.',
        example: {
          items: [
            {
              accessId: '0199c1f1-0b3a-7c52-a1de-5b8c1f0e2d41',
              at: '2026-11-30T17:40:00.000321Z',
              credentialId: '77aa0a7b1d2e4f5a6b7c',
              requestId: 'a2d2b7ce-6c52-4f0e-9d0a-0c7c4c3f1b11',
              method: 'GET',
              route: '/v1/exports/decisions',
              filters: {
                action: 'refund.create',
                recordedFrom: '2026-07-01T00:00:00Z',
                recordedTo: '2026-10-01T00:00:00Z',
              },
              rows: 1284,
              finished: true,
            },
          ],
          nextCursor: null,
        },
      },
    ],
    problems: [
      {
        code: 'validation-failed',
        detail: 'from: must be a time of RFC 3339 with an offset',
        members: { errors: [{ pointer: 'from', detail: 'must be a time of RFC 3339 with an offset' }] },
      },
    ],
  });
