import { ACTION_NAME, ACTION_NAME_LENGTH } from '#actions';
import { ATTEMPT_GROUP_NAMES, DECISION_GROUP_NAMES, type AttemptFilterName, type DecisionFilterName } from '#ledger';
import { Id, Name, Names, OneOf, Sha256Hex, Text, Time, WholeText } from '../fields/index.js';
import { CursorField, LimitField, OrderField } from './paging.js';

const LARGEST_INTEGER = 2_147_483_647;
const DOWNSTREAM_KEY =
  /^(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})$/;

/** Every filter of decisions. All that are given must hold. A test compares the names with the reader's own table. */
export class DecisionFilterQuery implements Partial<Record<DecisionFilterName, string>> {
  @Name({
    description: 'What was to be done.',
    example: 'refund.create',
    pattern: ACTION_NAME,
    form: 'the name of an action',
    max: ACTION_NAME_LENGTH,
    optional: true,
  })
  action?: string;

  @WholeText({
    description: "Under which version of the action's rules.",
    example: 1,
    min: 1,
    max: LARGEST_INTEGER,
    optional: true,
  })
  actionVersion?: string;

  @Text({ description: 'The kind of thing decided about.', example: 'case', optional: true })
  subjectType?: string;

  @Text({ description: 'The thing decided about.', example: 'C-1042', optional: true })
  subjectId?: string;

  @Text({ description: 'The model that concluded.', example: 'm-1', optional: true })
  modelId?: string;

  @Text({ description: 'Its version.', example: '2026-09-01', optional: true })
  modelVersion?: string;

  @Sha256Hex({ description: 'The prompt template, by its SHA-256.', optional: true })
  promptTemplateSha256?: string;

  @Text({ description: 'What the model was shown.', example: 'rs-14', optional: true })
  retrievalSnapshotId?: string;

  @Text({ description: 'The policy under which it concluded.', example: 'pol-7', optional: true })
  policyVersion?: string;

  @Text({ description: 'The period that the params state.', example: '2026-Q3', optional: true })
  reportingPeriod?: string;

  @OneOf({ description: 'How it ended.', example: 'applied', values: ['applied', 'refused'], optional: true })
  outcome?: string;

  @Text({ description: 'Why it was refused.', example: 'duplicate-subject', optional: true })
  reason?: string;

  @OneOf({
    description: 'Where it stands. A refusal is completed.',
    example: 'completed',
    values: ['in_flight', 'completed', 'failed', 'unknown'],
    optional: true,
  })
  state?: string;

  @Text({ description: 'The key of the decision.', example: 'order-8812-refund-1', optional: true })
  key?: string;

  @Text({ description: 'The key that is derived from the inputs.', optional: true })
  contentKey?: string;

  @Name({
    description:
      'A key as a system outside was given it: `hex40`, `hex32` or `uuid4` of a decision whose effect is outside. The form `key` is the key of the decision.',
    example: '113056fb-1a9f-4af2-b493-e381d325b975',
    pattern: DOWNSTREAM_KEY,
    form: '40 or 32 lower-case hex digits, or a UUID of version 4',
    optional: true,
  })
  downstreamKey?: string;

  @Text({ description: 'The reference of a provider.', optional: true })
  externalRef?: string;

  @Text({ description: 'A step that sent any attempt of it.', example: 'step-3', optional: true })
  stepId?: string;

  @Text({ description: 'A run that any attempt of it belongs to.', example: 'run-81', optional: true })
  runId?: string;

  @Text({ description: 'A credential that sent any attempt of it.', optional: true })
  credentialId?: string;

  @Id({ description: 'The decision itself.', optional: true })
  decisionId?: string;

  @Time({ description: 'Recorded at this time or later.', example: '2026-07-01T00:00:00Z', optional: true })
  recordedFrom?: string;

  @Time({ description: 'Recorded before this time.', example: '2026-10-01T00:00:00Z', optional: true })
  recordedTo?: string;
}

export class ListDecisionsQuery extends DecisionFilterQuery {
  @LimitField()
  limit?: string;

  @OrderField()
  order?: 'asc' | 'desc';

  @CursorField()
  cursor?: string;
}

export class CountDecisionsQuery extends DecisionFilterQuery {
  @Names({
    description: 'What to count by, as a list with commas. Rows without a value form a group with null.',
    example: 'action,outcome',
    values: DECISION_GROUP_NAMES,
    optional: true,
  })
  groupBy?: string;
}

export class ExportDecisionsQuery extends DecisionFilterQuery {
  @OneOf({
    description: 'One JSON object a line, or a table for a spreadsheet.',
    values: ['ndjson', 'csv'],
    default: 'ndjson',
    optional: true,
  })
  format?: 'ndjson' | 'csv';

  @OrderField()
  order?: 'asc' | 'desc';

  @CursorField('The cursor of the last row that arrived, to go on behind it, sent with the same filters and order.')
  cursor?: string;
}

/** Every filter of attempts: of the decision, and of the arrival itself. */
export class AttemptFilterQuery extends DecisionFilterQuery implements Partial<Record<AttemptFilterName, string>> {
  @OneOf({
    description: 'What became of the arrival.',
    example: 'mismatch',
    values: [
      'created',
      'refused',
      'replayed',
      'mismatch',
      'in_flight',
      'same_content',
      'reclaimed',
      'completed',
      'failed',
      'unknown',
      'lease_lost',
      'renewed',
      'resolved',
    ],
    optional: true,
  })
  disposition?: string;
}

export class ListAttemptsQuery extends AttemptFilterQuery {
  @LimitField()
  limit?: string;

  @OrderField()
  order?: 'asc' | 'desc';

  @CursorField()
  cursor?: string;
}

export class CountAttemptsQuery extends AttemptFilterQuery {
  @Names({
    description: 'What to count by, as a list with commas. Rows without a value form a group with null.',
    example: 'disposition',
    values: ATTEMPT_GROUP_NAMES,
    optional: true,
  })
  groupBy?: string;
}

export class ListAccessesQuery {
  @Text({ description: 'Who read: the id of a credential.', max: 64, optional: true })
  credentialId?: string;

  @Text({ description: 'What was read: the pattern of a route.', example: '/v1/exports/decisions', optional: true })
  route?: string;

  @Time({ description: 'Read at this time or later.', example: '2026-07-01T00:00:00Z', optional: true })
  from?: string;

  @Time({ description: 'Read before this time.', example: '2026-10-01T00:00:00Z', optional: true })
  to?: string;

  @LimitField()
  limit?: string;

  @OrderField()
  order?: 'asc' | 'desc';

  @CursorField()
  cursor?: string;
}
