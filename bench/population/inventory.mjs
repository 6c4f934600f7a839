/** So many versions has each action: a third of the time under each. */
export const VERSIONS = 3;

/** What the versions differ in. */
const VERSION_RULES = [
  { leaseSeconds: 30, responseRetentionDays: 90 },
  { leaseSeconds: 60, responseRetentionDays: 90 },
  { leaseSeconds: 60, responseRetentionDays: 180 },
];

const DISPATCH = {
  idempotencyWindowSeconds: 86_400,
  keyForm: 'uuid4',
  keyHeader: 'Idempotency-Key',
  maxAttempts: 5,
  method: 'POST',
  secretHeaders: {},
  timeoutMs: 10_000,
  url: 'https://crews.example/dispatches',
};

/**
 * What may be decided: with which share of all decisions, under which rules, and for which reasons, in which share of the
 * cases, its own rule says no. `period` is the form of PostgreSQL's to_char for the reporting period.
 */
export const ACTIONS = [
  { action: 'refund.issue', share: 0.3, execution: 'transactional', refused: 0.06, reasons: ['over-limit', 'closed'] },
  { action: 'note.add', share: 0.2, execution: 'transactional', sameContent: 'allow' },
  {
    action: 'report.file',
    share: 0.1,
    execution: 'transactional',
    uniqueness: 'subject-and-period',
    period: 'YYYY-"Q"Q',
  },
  { action: 'case.close', share: 0.05, execution: 'transactional', uniqueness: 'subject' },
  { action: 'payment.send', share: 0.2, execution: 'caller', refused: 0.05, reasons: ['card-declined', 'no-account'] },
  { action: 'claim.settle', share: 0.07, execution: 'caller', uniqueness: 'subject-and-period', period: 'YYYY-MM' },
  {
    action: 'crew.dispatch',
    share: 0.08,
    execution: 'dispatched',
    dispatch: DISPATCH,
    refused: 0.04,
    reasons: ['downstream-400', 'downstream-422'],
  },
].map((action) => ({ uniqueness: 'none', sameContent: 'replay', period: null, refused: 0, reasons: [], ...action }));

/** RFC 8785 bytes of the rules of a version, as the inventory keeps them: the members are written in the order of their names. */
export function rulesText({ dispatch, execution, sameContent, uniqueness }, version) {
  const { leaseSeconds, responseRetentionDays } = VERSION_RULES[version - 1];
  const isOutside = execution !== 'transactional';
  return JSON.stringify({
    ...(dispatch === undefined ? {} : { dispatch }),
    execution,
    leaseSeconds,
    ...(isOutside ? { onExpiredLease: 'reclaim' } : {}),
    responseRetentionDays,
    sameContent,
    uniqueness,
  });
}

/** A text as an SQL literal, and texts as an array of them. */
export const literal = (text) => (text === null ? 'NULL::text' : `'${text.replaceAll("'", "''")}'`);
export const array = (texts) => `ARRAY[${texts.map(literal).join(', ')}]::text[]`;

/** The actions as rows of a VALUES list, each with the stretch of chance from 0 to 1 that leads to it. */
export function actionValues() {
  let from = 0;
  return ACTIONS.map(({ action, share, execution, sameContent, uniqueness, period, refused, reasons }) => {
    const row = [from, (from += share), literal(action), literal(execution), literal(sameContent), literal(uniqueness)];
    return `(${[...row, literal(period), refused, array(reasons)].join(', ')})`;
  }).join(',\n');
}

/** What is the same for all versions with one number, as SQL that picks by the column `action_version`. */
export const byVersion = (name) => `(ARRAY[${VERSION_RULES.map((rules) => rules[name]).join(', ')}])[action_version]`;
