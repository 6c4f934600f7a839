import { validationFailed } from '#problem';
import type { Source } from './source.js';

/** What counts can be grouped by, each defined here once: the name, and its value in a source. */
type Group = (source: Source) => string;

/** As many as a person can look through; a count with more of them is a list. */
const MOST_GROUPS = 10_000;

const DECISION_GROUPS = {
  action: ({ basis }) => `${basis}.action`,
  actionVersion: ({ basis }) => `${basis}.action_version`,
  outcome: ({ outcome }) => outcome,
  reason: ({ reason }) => reason,
  state: ({ state }) => state,
  modelId: ({ basis }) => `${basis}.model_id`,
  modelVersion: ({ basis }) => `${basis}.model_version`,
  promptTemplateSha256: ({ basis }) => `encode(${basis}.prompt_template_sha256, 'hex')`,
  policyVersion: ({ basis }) => `${basis}.policy_version`,
  retrievalSnapshotId: ({ basis }) => `${basis}.retrieval_snapshot_id`,
  subjectType: ({ basis }) => `${basis}.subject_type`,
  reportingPeriod: ({ basis }) => `${basis}.reporting_period`,
  day: ({ countedAt }) => `to_char(${countedAt} AT TIME ZONE 'UTC', 'YYYY-MM-DD')`,
  month: ({ countedAt }) => `to_char(${countedAt} AT TIME ZONE 'UTC', 'YYYY-MM')`,
} satisfies Record<string, Group>;

/** What is the attempt's own. */
const OF_ATTEMPT = {
  credentialId: () => 'a.credential_id',
  disposition: () => 'a.disposition',
} satisfies Record<string, Group>;

const ATTEMPT_GROUPS = { ...DECISION_GROUPS, ...OF_ATTEMPT };

export type GroupName = keyof typeof ATTEMPT_GROUPS;

export const DECISION_GROUP_NAMES: readonly string[] = Object.keys(DECISION_GROUPS);
export const ATTEMPT_GROUP_NAMES: readonly string[] = Object.keys(ATTEMPT_GROUPS);

export const isGroupName = (name: string): name is GroupName => name in ATTEMPT_GROUPS;

/** Whether a group asks something of an attempt's decision. */
export const groupsByDecision = (groupBy: readonly GroupName[]): boolean =>
  groupBy.some((name) => !(name in OF_ATTEMPT) && name !== 'day' && name !== 'month');

export interface Counted {
  /** Over all groups. */
  total: number;
  groups: Record<string, unknown>[];
}

/** A statement that counts the rows of some sources in groups. Where nothing is asked for, all are one group. */
export function countSql(
  sources: readonly Source[],
  conditionOf: (source: Source) => string,
  groupBy: readonly GroupName[],
): string {
  const column = (index: number): string => `g${index}`;
  const columns = groupBy.map((_name, index) => column(index));
  const rows = sources.map((source) => {
    const values = groupBy.map((name, index) => `${ATTEMPT_GROUPS[name](source)} AS ${column(index)}`);
    return `SELECT ${[...values, '1 AS one'].join(', ')} FROM ${source.from} WHERE ${source.where}${conditionOf(source)}`;
  });
  const members = groupBy.flatMap((name, index) => [`'${name}'`, column(index)]);
  return `SELECT json_build_object(${[...members, `'count'`, 'count(*)'].join(', ')}) AS counted
            FROM (${rows.join(' UNION ALL ')}) counted
           ${columns.length === 0 ? '' : `GROUP BY ${columns.join(', ')} ORDER BY ${columns.join(', ')} LIMIT ${MOST_GROUPS + 1}`}`;
}

/** @throws Problem `validation-failed` where there are more groups than one can look through */
export function countedOf(
  rows: readonly { counted: Record<string, unknown> }[],
  groupBy: readonly GroupName[],
): Counted {
  if (rows.length > MOST_GROUPS) {
    throw validationFailed([
      { pointer: 'groupBy', detail: `makes more than ${MOST_GROUPS} groups: narrow the question, or walk the list` },
    ]);
  }
  const total = rows.reduce((sum, { counted }) => sum + Number(counted['count']), 0);
  return { total, groups: groupBy.length === 0 ? [] : rows.map(({ counted }) => counted) };
}
