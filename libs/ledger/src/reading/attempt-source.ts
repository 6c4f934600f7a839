import { DECISIONS, RECORDED, type Source } from './source.js';

const OF_ATTEMPT = {
  id: 'a.attempt_id',
  at: 'a.received_at',
  countedAt: 'a.received_at',
  asOf: (_snapshot: string, time: string) => `a.received_at <= ${time}`,
};

const ofDecisionsIn = (source: Source): Source => ({
  ...source,
  ...OF_ATTEMPT,
  from: `${source.from} JOIN attempt a ON a.decision_id = f.decision_id AND a.tenant_id = $1`,
});

/** Attempts whose decisions are asked about too: found from either side. */
export const BY_DECISION = DECISIONS.map(ofDecisionsIn);

/** Every attempt, of which no more is asked than what it says itself. */
export const EVERY: Source = {
  ...OF_ATTEMPT,
  from: 'attempt a',
  where: 'a.tenant_id = $1',
  basis: 'd',
  state: 'NULL::text',
  outcome: 'NULL::text',
  reason: 'NULL::text',
  externalRef: 'NULL::text',
  recordedAt: 'NULL::timestamptz',
  hasKey: () => 'false',
};

const OF_NO_DECISION: Source = {
  ...EVERY,
  from: 'attempt a LEFT JOIN decision_record d ON false',
  where: `${EVERY.where} AND a.decision_id IS NULL`,
};

/** The decision of each attempt is looked up: that takes as long as there are attempts, however many decisions there are. */
const OF_RECORDED: Source = {
  ...ofDecisionsIn(RECORDED),
  from: `attempt a
      CROSS JOIN LATERAL (SELECT * FROM recorded_decision r WHERE r.decision_id = a.decision_id AND r.tenant_id = $1 OFFSET 0) f`,
  where: `${EVERY.where} AND ${RECORDED.where}`,
};

/** Every attempt with what is known of its decision, if there is one. */
export const WITH_DECISION = [
  ...DECISIONS.map((source) => (source === RECORDED ? OF_RECORDED : ofDecisionsIn(source))),
  OF_NO_DECISION,
];
