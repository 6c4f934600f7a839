/** One decision, told the same way on every page of the description. */
export const DECISION_ID = '0199c1f0-6b3a-7c52-a1de-5b8c1f0e2d41';
export const WINNER_ID = '0199c1ef-0a11-7d03-9c44-1e2f3a4b5c6d';
export const ENTRY_ID = '0199c1f0-6b3a-7c53-8f10-7a6b5c4d3e2f';
export const CONTENT_KEY = 'dk_demo_113056fb1a9f4af2f493e381d325b9759f004342';
export const RECORDED_AT = '2026-11-30T17:36:00.123456Z';

export const INPUTS = {
  subject: { type: 'case', id: 'C-1042' },
  action: 'refund.create',
  params: { amount: '10.00', currency: 'EUR' },
  model: { id: 'm-1', version: '2026-09-01' },
  promptTemplateSha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  retrievalSnapshotId: 'rs-14',
  policyVersion: 'pol-7',
};

export const REQUEST = {
  inputs: INPUTS,
  note: 'parcel lost',
  evidence: { stepId: 'step-3', runId: 'run-81', attempt: 1 },
};

export const APPLIED = {
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

export const CLAIMED = {
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

export const REFUSED_MEMBERS = { decisionId: DECISION_ID, key: CONTENT_KEY, ledgerEntryId: ENTRY_ID };
export const WINNER = { decisionId: WINNER_ID, key: 'sar-C-1042-2026-Q3', recordedAt: '2026-10-02T08:00:00.000001Z' };

export const ROW = {
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
