import type { Role } from '#access';
import { INPUTS, ROW } from '../decisions/sample.js';
import { DocumentedWithQuestions } from './questions/questions.js';

const AUDITORS: readonly Role[] = ['admin', 'auditor'];

const LINE = {
  ...ROW,
  fingerprint: '8494ad7ae90ef9d055250ec98d5bfd2cef02aa85994c17f7c592f444657dad8e',
  note: null,
  leafIndex: null,
  salts: {
    params: 'q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA',
    note: null,
    result: 'EjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJCrze8',
  },
  inputs: { ...INPUTS, tenantId: 'demo' },
  result: {},
  cursor: 'MjAyNi0xMS0zMFQxNzozNjowMC4xMjM0NTZa…',
};

const TRAILER = {
  trailer: { rows: 1, sha256: '2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae', nextCursor: null },
};

export const ExportDecisionsDoc = (): MethodDecorator =>
  DocumentedWithQuestions({
    id: 'exportDecisions',
    takesQuery: true,
    summary: 'The complete population',
    description:
      'Every decision that the filters hold for, as one file: the rows of the list with what was hashed beside them. The last line is a trailer with the number of rows and the SHA-256 of every byte before it; a file without it was broken off. Go on from there with the `cursor` of the last row that arrived (NDJSON). A range that is closed by a `recordedTo` in the past gives the same rows each time, and the same bytes once everything in it is sealed. In CSV no cell begins a formula: what would, and what begins with an apostrophe already, has an apostrophe before it. The export is in the log of accesses before its first byte.',
    roles: AUDITORS,
    answers: [
      {
        status: 200,
        description: 'The rows, and the trailer.',
        type: 'application/x-ndjson',
        example: `${JSON.stringify(LINE)}\n${JSON.stringify(TRAILER)}\n`,
      },
    ],
    problems: [
      {
        code: 'validation-failed',
        detail: 'format: must be one of ndjson, csv',
        members: { errors: [{ pointer: 'format', detail: 'must be one of ndjson, csv' }] },
      },
    ],
  });
