import { DECISION_ID, INPUTS, ROW, WINNER_ID } from '../../decisions/sample.js';
import type { Question } from './question.js';

const QUARTER = { recordedFrom: '2026-07-01T00:00:00Z', recordedTo: '2026-10-01T00:00:00Z' };
const ORCHESTRATOR = '3f9c0a7b1d2e4f5a6b7c';
const SHA256 = '2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae';
const { decisionId, subject, outcome } = ROW;

/** What the record itself shows: its completeness, who won, what is open, who read it. */
export const WHAT_THE_RECORD_SAYS: readonly Question[] = [
  {
    id: 'population',
    question: 'What is the complete population of a period, with proof of its count, to draw a sample from?',
    before:
      'An export has every row of the period and ends with a line that says how many there were. For a spreadsheet add `format=csv`.',
    requests: [
      {
        operation: 'exportDecisions',
        query: QUARTER,
        pipe: '-o population.ndjson',
        answer: [
          {
            decisionId,
            outcome,
            action: 'refund.create',
            subject,
            recordedAt: '2026-09-30T17:36:00.123456Z',
            fingerprint: '8494ad7ae90ef9d055250ec98d5bfd2cef02aa85994c17f7c592f444657dad8e',
            inputs: { ...INPUTS, tenantId: 'demo' },
            cursor: 'MjAyNi0wOS0zMFQxNzozNjowMC4xMjM0NTZa…',
          },
          { trailer: { rows: 1284, sha256: SHA256, nextCursor: null } },
        ],
      },
      {
        part: 'The count, asked independently',
        operation: 'countDecisions',
        query: QUARTER,
        answer: { total: 1284, groups: [] },
      },
    ],
    reading:
      'The file is complete if its last line is the trailer, if the rows before it are as many as `rows` says, and if their SHA-256 is `sha256` (see “Exports” above). The count, asked by itself for the same period, is the same number. A period that is over gives the same rows every time, so somebody else can draw the same sample again. A range takes in what has an outcome; ask for `state=in_flight`, `unknown` and `failed` to see what has none.',
  },
  {
    id: 'reused-keys',
    question: 'Which keys were reused for another request?',
    before: 'A key stands for one request. Another request under it is turned away and recorded.',
    requests: [
      {
        operation: 'listAttempts',
        query: { disposition: 'mismatch', ...QUARTER },
        answer: {
          items: [
            {
              decisionId: DECISION_ID,
              key: 'order-8812-refund-1',
              disposition: 'mismatch',
              won: false,
              evidence: { stepId: 'step-3', runId: 'run-82' },
              credentialId: ORCHESTRATOR,
              receivedAt: '2026-09-30T17:36:02.004211Z',
              problem: 'fingerprint-mismatch',
            },
          ],
          nextCursor: null,
        },
      },
    ],
    reading:
      'One row for each time: `key` was reused, `decisionId` is what it stands for, `credentialId` and `evidence` say who reused it. Nothing was done for such a request, and its contents are not kept. Somebody who reports another outcome for a decision that has ended is in this list too; such a row has no `evidence`.',
  },
  {
    id: 'open',
    question: 'Which outcomes are unknown or in flight, and since when?',
    before: 'One request for each state; a third says when it was noticed that an outcome is unknown.',
    requests: [
      {
        part: 'What is unknown',
        operation: 'listDecisions',
        query: { state: 'unknown' },
        answer: {
          items: [
            {
              decisionId: DECISION_ID,
              state: 'unknown',
              outcome: null,
              action: 'payout.send',
              subject,
              receivedAt: '2026-11-30T17:36:00.121001Z',
              recordedAt: null,
            },
          ],
          nextCursor: null,
        },
      },
      {
        part: 'What is in flight',
        operation: 'listDecisions',
        query: { state: 'in_flight' },
        answer: {
          items: [
            {
              decisionId: WINNER_ID,
              state: 'in_flight',
              outcome: null,
              action: 'payout.send',
              subject: { type: 'case', id: 'C-1043' },
              receivedAt: '2026-11-30T18:00:10.000321Z',
              recordedAt: null,
            },
          ],
          nextCursor: null,
        },
      },
      {
        part: 'Since when it is known to be unknown',
        operation: 'listAttempts',
        query: { state: 'unknown', disposition: 'unknown' },
        answer: {
          items: [{ decisionId: DECISION_ID, disposition: 'unknown', receivedAt: '2026-11-30T17:36:29.800410Z' }],
          nextCursor: null,
        },
      },
    ],
    reading:
      'Open since `receivedAt`, when the decision first arrived. `in_flight`: somebody holds the right to carry it out. `unknown`: the effect may have happened and nobody knows; it is not carried out again until an admin has found out. Such a decision has no outcome and no ledger entry, and it is in no range of `recordedFrom` and `recordedTo`. The third request shows each arrival that reported it as unknown or was told so; the earliest of a decision is since when. A decision without one became unknown when its lease ran out: `GET /v1/idempotency-records/{key}` says in `lockedUntil` when.',
  },
  {
    id: 'provider-references',
    question: 'What is the provider’s reference and the amount beside our decision id?',
    before: 'The export has both: `externalRef` from the report of the outcome, the amount from the inputs.',
    requests: [
      {
        operation: 'exportDecisions',
        query: { action: 'payout.send', outcome: 'applied', ...QUARTER },
        pipe: `jq -r 'select(.decisionId) | [.decisionId, .externalRef, .inputs.params.amount, .inputs.params.currency] | @csv'`,
        answer: [
          {
            decisionId,
            externalRef: 're_93',
            inputs: { params: { amount: '10.00', currency: 'EUR' } },
            result: { refundId: 're_93' },
          },
          { trailer: { rows: 412, sha256: SHA256, nextCursor: null } },
        ],
      },
    ],
    reading:
      'The command makes a table of them that can be laid beside the provider’s statement. The amount is what was decided, letter for letter; what the provider answered is in `result`. The reference is as the agent reported it. For one reference: `GET /v1/decisions?externalRef=re_93`.',
  },
  {
    id: 'who-won',
    question: 'Which attempt won, and which step sent it?',
    before: 'All arrivals for one decision, in the order of their arrival.',
    requests: [
      {
        operation: 'listAttempts',
        query: { decisionId: DECISION_ID },
        answer: {
          items: [
            {
              attemptId: '0199c1f0-6b3a-7c55-9d2e-4f5a6b7c8d9e',
              disposition: 'created',
              won: true,
              evidence: { stepId: 'step-3', runId: 'run-81' },
              credentialId: ORCHESTRATOR,
              receivedAt: '2026-11-30T17:36:00.121001Z',
            },
            {
              attemptId: '0199c1f0-7c4b-7d66-8e3f-5a6b7c8d9e0f',
              disposition: 'replayed',
              won: false,
              evidence: { stepId: 'step-3', runId: 'run-82' },
              credentialId: ORCHESTRATOR,
              receivedAt: '2026-11-30T17:36:02.004211Z',
            },
          ],
          nextCursor: null,
        },
      },
    ],
    reading:
      '`won: true` stands at the one arrival that brought the recorded outcome, an applied one or a refusal; `evidence.stepId` is the step that sent it. For an effect outside the database that is the report of the outcome, which carries no evidence: the step is that of the last `created` or `reclaimed` arrival before it. As long as there is no outcome, no arrival has won.',
  },
  {
    id: 'who-looked',
    question: 'Who looked at or exported these records?',
    before: 'The access log is itself a record. Leave `route` out to see readings of every kind.',
    requests: [
      {
        operation: 'listAccesses',
        query: { route: '/v1/exports/decisions', from: '2026-07-01T00:00:00Z', to: '2026-12-01T00:00:00Z' },
        answer: {
          items: [
            {
              at: '2026-11-30T17:40:00.000321Z',
              credentialId: '77aa0a7b1d2e4f5a6b7c',
              method: 'GET',
              route: '/v1/exports/decisions',
              filters: { action: 'refund.create', ...QUARTER },
              rows: 1284,
              finished: true,
            },
          ],
          nextCursor: null,
        },
      },
    ],
    reading:
      '`credentialId` read what `filters` describe: `rows` rows. A credential has a name, which an admin sees at `GET /v1/credentials`. `finished: false` is an export that is under way or was broken off. Readings of one decision are under the route `/v1/decisions/{decisionId}`, with its id in `filters`. Your own question will be in the next answer.',
  },
];
