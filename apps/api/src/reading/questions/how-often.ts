import { DECISION_ID } from '../../decisions/sample.js';
import type { Question } from './question.js';

const QUARTER = { recordedFrom: '2026-07-01T00:00:00Z', recordedTo: '2026-10-01T00:00:00Z' };
const DAY = { recordedFrom: '2026-09-14T00:00:00Z', recordedTo: '2026-09-15T00:00:00Z' };

/** How often something was done, and how often it was tried. */
export const HOW_OFTEN: readonly Question[] = [
  {
    id: 'issued-and-tried',
    question: 'How many refunds did the agent issue last quarter, and how many times did it try?',
    before:
      'Two requests, because two different things are counted: the first counts decisions, the second counts arrivals of requests. Put `credentialId` into both if only one agent is meant.',
    requests: [
      {
        part: 'How many were issued',
        operation: 'countDecisions',
        query: { action: 'refund.create', ...QUARTER, groupBy: 'outcome' },
        answer: {
          total: 1284,
          groups: [
            { outcome: 'applied', count: 1201 },
            { outcome: 'refused', count: 83 },
          ],
        },
      },
      {
        part: 'How many times it tried',
        operation: 'countAttempts',
        query: { action: 'refund.create', ...QUARTER, groupBy: 'disposition' },
        answer: {
          total: 3120,
          groups: [
            { disposition: 'created', count: 1201 },
            { disposition: 'in_flight', count: 30 },
            { disposition: 'mismatch', count: 4 },
            { disposition: 'refused', count: 83 },
            { disposition: 'replayed', count: 1802 },
          ],
        },
      },
    ],
    reading:
      '`applied` is the number of refunds issued: 1,201. The agent tried 3,120 times: 1,284 first arrivals (`created` and `refused`) and 1,836 more that brought no further refund. A decision counts in the quarter in which it was recorded, an arrival in the quarter in which it arrived, so a retry after midnight belongs to the next. An arrival that was told to come back before its decision could be looked at has no decision and therefore no action of one: ask the second request without `action` and with `groupBy=action,disposition`, and it stands under `action: null`.',
  },
  {
    id: 'two-reports',
    question: 'Did any case receive two reports for a period, and who attempted the second?',
    before:
      'Two requests: one for the reports that were filed, one for those that were attempted although the case had its report. The rule is the action’s `uniqueness`; see its versions for since when it holds.',
    requests: [
      {
        part: 'The reports that were filed',
        operation: 'listDecisions',
        query: { action: 'sar.file', reportingPeriod: '2026-Q3', outcome: 'applied', limit: '500' },
        pipe: `jq -r '.items[].subject | .type + " " + .id' | sort | uniq -d`,
        answer: {
          items: [
            { decisionId: '0199c1ef-0a11-7d03-9c44-1e2f3a4b5c6d', subject: { type: 'case', id: 'C-1042' } },
            { decisionId: '0199c1ef-0a12-7a51-8d20-5e6f7a8b9c0d', subject: { type: 'case', id: 'C-1043' } },
          ],
          nextCursor: null,
        },
      },
      {
        part: 'Who attempted a second',
        operation: 'listAttempts',
        query: { action: 'sar.file', reportingPeriod: '2026-Q3', reason: 'duplicate-subject' },
        answer: {
          items: [
            {
              decisionId: DECISION_ID,
              key: 'sar-C-1042-again',
              disposition: 'refused',
              won: true,
              evidence: { stepId: 'step-9', runId: 'run-90' },
              credentialId: '3f9c0a7b1d2e4f5a6b7c',
              receivedAt: '2026-10-02T09:12:44.120034Z',
              problem: 'duplicate-subject',
            },
          ],
          nextCursor: null,
        },
      },
    ],
    reading:
      'The command behind the first request prints each case that stands in the list twice. It prints nothing: no case has two. In the second answer each row is somebody who asked for one: `credentialId` says which agent, `evidence` which run and step, `decisionId` leads to the case and to what the agent based it on. `disposition` is `refused` when it asked first and `replayed` when it asked again. If there are more than 500 reports, go on with `nextCursor`, or export them. For one case, add `subjectType` and `subjectId`.',
  },
  {
    id: 'outage',
    question: 'During the outage on a day: how many retries arrived, and how many second effects were there?',
    before:
      'Two requests for the same action and the same hours: what arrived, and what was decided. Ask for one action at a time.',
    requests: [
      {
        part: 'What arrived',
        operation: 'countAttempts',
        query: { action: 'refund.create', ...DAY, groupBy: 'disposition,outcome' },
        answer: {
          total: 506,
          groups: [
            { disposition: 'created', outcome: 'applied', count: 96 },
            { disposition: 'in_flight', outcome: 'applied', count: 18 },
            { disposition: 'replayed', outcome: 'applied', count: 392 },
          ],
        },
      },
      {
        part: 'What took effect',
        operation: 'countDecisions',
        query: { action: 'refund.create', ...DAY, groupBy: 'outcome' },
        answer: { total: 96, groups: [{ outcome: 'applied', count: 96 }] },
      },
    ],
    reading:
      'Retries are the arrivals that are neither `created` nor `refused`: 410. Effects are the applied decisions: 96, as many as first arrivals that were applied. So there were no second effects; a decision has one effect at most, which a constraint of the database enforces. For an effect outside the database the first arrival only takes the lease; compare with `completed` and `resolved` instead of `created`.',
  },
];
