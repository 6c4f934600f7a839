import { DECISION_ID, INPUTS, ROW } from '../../decisions/sample.js';
import type { Question } from './question.js';

const { decisionId, recordedAt, action, actionVersion, subject, policyVersion, outcome } = ROW;
const BRIEF = { decisionId, outcome, action, subject, policyVersion, recordedAt };
const page = (...items: readonly unknown[]): unknown => ({ items, nextCursor: null });

/** On what basis something was decided. */
export const ON_WHAT_BASIS: readonly Question[] = [
  {
    id: 'policy-version',
    question: 'Which policy version allowed this one?',
    before:
      'If only the key is known, `GET /v1/decisions?key=…` finds the decision; `externalRef=…` finds it by the reference of a provider.',
    requests: [
      {
        operation: 'getDecision',
        params: { decisionId: DECISION_ID },
        answer: { decisionId, outcome, policyVersion, action, actionVersion, recordedAt },
      },
    ],
    reading:
      '`policyVersion` is what the agent named when it asked, `actionVersion` the version of the action’s rules in this service under which it was decided. Both were stored with the decision and have not been looked up now.',
  },
  {
    id: 'same-basis',
    question: 'What was decided under prompt template X; under model Y version Z; from snapshot S?',
    before: 'One request each. Filters can be joined: all of them must hold.',
    requests: [
      {
        part: 'Under a prompt template',
        operation: 'listDecisions',
        query: { promptTemplateSha256: INPUTS.promptTemplateSha256 },
        answer: page({ ...BRIEF, promptTemplateSha256: INPUTS.promptTemplateSha256 }),
      },
      {
        part: 'Under a version of a model',
        operation: 'listDecisions',
        query: { modelId: INPUTS.model.id, modelVersion: INPUTS.model.version },
        answer: page({ ...BRIEF, model: INPUTS.model }),
      },
      {
        part: 'From a snapshot',
        operation: 'listDecisions',
        query: { retrievalSnapshotId: INPUTS.retrievalSnapshotId },
        answer: page({ ...BRIEF, retrievalSnapshotId: INPUTS.retrievalSnapshotId }),
      },
    ],
    reading:
      'A template is known by the SHA-256 of its text: `sha256sum < template.txt` gives it. Refused decisions and those without an outcome are in the list; add `outcome=applied` to leave them out. The same parameters on `/v1/decisions/count` and `/v1/exports/decisions` count and export exactly these rows.',
  },
  {
    id: 'what-the-model-saw',
    question: 'What did the model see for this decision?',
    before: 'The request is kept as it was hashed.',
    requests: [
      {
        operation: 'getDecision',
        params: { decisionId: DECISION_ID },
        answer: {
          decisionId,
          fingerprint: '8494ad7ae90ef9d055250ec98d5bfd2cef02aa85994c17f7c592f444657dad8e',
          request: {
            inputs: { ...INPUTS, tenantId: 'demo' },
            note: 'parcel lost',
            firstEvidence: { stepId: 'step-3', runId: 'run-81', rationale: 'carrier confirms the loss' },
          },
        },
      },
    ],
    reading:
      '`inputs` is what defines the decision: the case, the parameters, the model and its version, the prompt template (by hash), the snapshot of what was retrieved, and the policy. This service keeps the names and hashes; the template and the snapshot themselves are where the agent’s operator keeps them, and the hash shows whether a template is the same. `firstEvidence` is what the agent said about itself when it first asked: its step, its run, its reasons. It is a statement of the agent and nothing was checked against it.',
  },
  {
    id: 'one-subject',
    question: 'What was done to this subject, in order?',
    before: 'In the order of recording; `order=desc` begins with the latest.',
    requests: [
      {
        operation: 'listDecisions',
        query: { subjectType: 'case', subjectId: 'C-1042', order: 'asc' },
        answer: page(
          { ...BRIEF, externalRef: null },
          {
            decisionId: '0199c1f2-7d10-7b41-9a3e-2c4d6e8f0a1b',
            outcome: { status: 'refused', reason: 'exceeds-order-total' },
            action: 'refund.create',
            subject,
            policyVersion,
            recordedAt: '2026-11-30T18:02:11.700124Z',
            externalRef: null,
          },
        ),
      },
    ],
    reading:
      'Every decision about the subject, of any action: applied, refused, and, with `outcome: null`, under way, failed or unknown (`state` says which); the latter stand at the time at which they were received. With `outcome=applied` the list is what was really done.',
  },
  {
    id: 'not-to-act',
    question: 'Which decisions were decisions not to act, and for which reasons?',
    before: 'A refusal is an outcome and is recorded like any other.',
    requests: [
      {
        operation: 'listDecisions',
        query: { outcome: 'refused', recordedFrom: '2026-07-01T00:00:00Z', recordedTo: '2026-10-01T00:00:00Z' },
        answer: page({
          ...BRIEF,
          outcome: { status: 'refused', reason: 'exceeds-order-total' },
          effectId: null,
          recordedAt: '2026-09-30T18:02:11.700124Z',
        }),
      },
      {
        part: 'How many, by reason',
        operation: 'countDecisions',
        query: {
          outcome: 'refused',
          recordedFrom: '2026-07-01T00:00:00Z',
          recordedTo: '2026-10-01T00:00:00Z',
          groupBy: 'action,reason',
        },
        answer: {
          total: 85,
          groups: [
            { action: 'refund.create', reason: 'exceeds-order-total', count: 83 },
            { action: 'sar.file', reason: 'duplicate-subject', count: 2 },
          ],
        },
      },
    ],
    reading:
      '`duplicate-subject` and `downstream-<status>` are written by this service: the subject had its effect, or the provider said no. Every other reason comes from the rule of the action or from the agent that reported it. `effectId` is null: nothing was done. What failed is not here: a failure is no decision not to act; ask for `state=failed`.',
  },
  {
    id: 'one-run',
    question: 'Which decisions belong to one run?',
    before: 'A run is what the agent’s orchestrator calls one; it is taken from the evidence of the arrivals.',
    requests: [
      {
        operation: 'listDecisions',
        query: { runId: 'run-81' },
        answer: page(BRIEF),
      },
    ],
    reading:
      'Every decision for which any request of the run arrived, also one that another run had brought about before. `GET /v1/attempts?runId=run-81` shows what each request of the run came to; `won: true` marks what the run itself brought about.',
  },
  {
    id: 'rules',
    question: 'What changed in the action’s rules, and which decisions fall under which version?',
    before: 'Two requests: the versions with their rules, and the decisions counted by version.',
    requests: [
      {
        part: 'What changed',
        operation: 'listActionVersions',
        params: { action: 'sar.file' },
        answer: {
          items: [
            {
              version: 1,
              uniqueness: 'subject',
              responseRetentionDays: 90,
              updatedAt: '2026-01-05T08:00:00.000001Z',
              credentialId: '9b8a7c6d5e4f3a2b1c0d',
            },
            {
              version: 2,
              uniqueness: 'subject-and-period',
              responseRetentionDays: 90,
              updatedAt: '2026-04-01T06:30:00.000001Z',
              credentialId: '9b8a7c6d5e4f3a2b1c0d',
            },
          ],
        },
      },
      {
        part: 'Which decisions fall under which version',
        operation: 'countDecisions',
        query: { action: 'sar.file', groupBy: 'actionVersion,outcome' },
        answer: {
          total: 340,
          groups: [
            { actionVersion: 1, outcome: 'applied', count: 120 },
            { actionVersion: 2, outcome: 'applied', count: 218 },
            { actionVersion: 2, outcome: 'refused', count: 2 },
          ],
        },
      },
    ],
    reading:
      'Each version has all its rules; compare one with the version before it. `updatedAt` and `credentialId` say when it was made and by whom (null: it came with the first start). `GET /v1/decisions?action=sar.file&actionVersion=1` lists the decisions of one version. A decision keeps the version under which it was first received, also if it ended after a change.',
  },
];
