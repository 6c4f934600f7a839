import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A recorded decision as the reading side looks for it: a copy of what its entry and its decision record say. */
@Entity('recorded_decision')
@Check(
  'recorded_decision_lengths',
  `char_length(action) BETWEEN 1 AND 64 AND char_length(subject_type) BETWEEN 1 AND 255 AND char_length(subject_id) BETWEEN 1 AND 255
    AND char_length(reporting_period) BETWEEN 1 AND 10 AND char_length(model_id) BETWEEN 1 AND 255 AND char_length(model_version) BETWEEN 1 AND 255
    AND char_length(retrieval_snapshot_id) BETWEEN 1 AND 255 AND char_length(policy_version) BETWEEN 1 AND 255 AND char_length(outcome) BETWEEN 1 AND 10
    AND char_length(reason) BETWEEN 1 AND 255 AND char_length(external_ref) BETWEEN 1 AND 255`,
)
@Index('recorded_decision_by_time', ['tenantId', 'recordedAt', 'decisionId'])
@Index('recorded_decision_once_in_flight', ['tenantId', 'recordedAt'], { where: '(received_at <> recorded_at)' })
@Index('recorded_decision_by_action', ['action', 'tenantId', 'recordedAt', 'decisionId'])
@Index('recorded_decision_by_action_version', ['actionVersion', 'tenantId', 'recordedAt', 'decisionId'])
@Index('recorded_decision_by_subject', ['subjectId', 'tenantId', 'recordedAt', 'decisionId'])
@Index('recorded_decision_by_subject_type', ['subjectType', 'tenantId', 'recordedAt', 'decisionId'])
@Index('recorded_decision_by_model', ['modelId', 'tenantId', 'recordedAt', 'decisionId'])
@Index('recorded_decision_by_model_version', ['modelVersion', 'tenantId', 'recordedAt', 'decisionId'])
@Index('recorded_decision_by_prompt_template', ['promptTemplateSha256', 'tenantId', 'recordedAt', 'decisionId'])
@Index('recorded_decision_by_retrieval_snapshot', ['retrievalSnapshotId', 'tenantId', 'recordedAt', 'decisionId'])
@Index('recorded_decision_by_policy', ['policyVersion', 'tenantId', 'recordedAt', 'decisionId'])
@Index('recorded_decision_by_period', ['reportingPeriod', 'tenantId', 'recordedAt', 'decisionId'], {
  where: '(reporting_period IS NOT NULL)',
})
@Index('recorded_decision_by_reason', ['reason', 'tenantId', 'recordedAt', 'decisionId', 'action', 'outcome'], {
  where: '(reason IS NOT NULL)',
})
@Index('recorded_decision_refused', ['tenantId', 'recordedAt'], { where: `(outcome = 'refused'::text)` })
@Index('recorded_decision_by_external_ref', ['externalRef', 'tenantId'], { where: '(external_ref IS NOT NULL)' })
export class RecordedDecision {
  @PrimaryColumn({ name: 'decision_id', type: 'uuid', primaryKeyConstraintName: 'recorded_decision_pkey' })
  decisionId: string;

  @PrimaryColumn({
    name: 'tenant_id',
    type: 'text',
    collation: 'C',
    primaryKeyConstraintName: 'recorded_decision_pkey',
  })
  tenantId: string;

  @Column({ name: 'ledger_entry_id', type: 'uuid' })
  ledgerEntryId: string;

  @Column({ name: 'received_at', type: 'timestamptz' })
  receivedAt: Date;

  @Column({ name: 'recorded_at', type: 'timestamptz' })
  recordedAt: Date;

  /** The transaction that recorded it, as PostgreSQL counts them. */
  @Column({ name: 'recorded_in', type: 'bigint', default: () => 'this_transaction()' })
  recordedIn: string;

  @Column({ name: 'action_version', type: 'integer' })
  actionVersion: number;

  @Column({ type: 'text', collation: 'C' })
  action: string;

  @Column({ name: 'subject_type', type: 'text', collation: 'C' })
  subjectType: string;

  @Column({ name: 'subject_id', type: 'text', collation: 'C' })
  subjectId: string;

  @Column({ name: 'reporting_period', type: 'text', collation: 'C', nullable: true })
  reportingPeriod: string | null;

  @Column({ name: 'model_id', type: 'text', collation: 'C' })
  modelId: string;

  @Column({ name: 'model_version', type: 'text', collation: 'C' })
  modelVersion: string;

  @Column({ name: 'prompt_template_sha256', type: 'bytea' })
  promptTemplateSha256: Buffer;

  @Column({ name: 'retrieval_snapshot_id', type: 'text', collation: 'C' })
  retrievalSnapshotId: string;

  @Column({ name: 'policy_version', type: 'text', collation: 'C' })
  policyVersion: string;

  @Column({ type: 'text', collation: 'C' })
  outcome: string;

  @Column({ type: 'text', collation: 'C', nullable: true })
  reason: string | null;

  @Column({ name: 'external_ref', type: 'text', collation: 'C', nullable: true })
  externalRef: string | null;
}
