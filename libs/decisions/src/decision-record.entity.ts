import { Check, Column, Entity, Index, PrimaryColumn, Unique } from 'typeorm';

/** What was decided and on what basis. Append-only. */
@Entity('decision_record')
@Unique('decision_record_content_once', ['contentHash', 'tenantId', 'contentOnce'])
@Index('decision_record_by_downstream_key', ['downstreamUuid4', 'tenantId'], {
  where: '(downstream_uuid4 IS NOT NULL)',
})
@Check('decision_record_content_once_is_true_or_null', 'content_once')
@Check('decision_record_key_source', `key_source IN ('content', 'client')`)
@Check(
  'decision_record_hashes',
  'octet_length(content_hash) = 20 AND octet_length(fingerprint) = 32 AND octet_length(prompt_template_sha256) = 32',
)
@Check(
  'decision_record_lengths',
  `char_length(idem_key) BETWEEN 1 AND 255 AND char_length(action) BETWEEN 1 AND 64 AND char_length(subject_type) BETWEEN 1 AND 255 AND char_length(subject_id) BETWEEN 1 AND 255
   AND char_length(model_id) BETWEEN 1 AND 255 AND char_length(model_version) BETWEEN 1 AND 255 AND char_length(retrieval_snapshot_id) BETWEEN 1 AND 255
   AND char_length(policy_version) BETWEEN 1 AND 255 AND char_length(note) BETWEEN 1 AND 4000 AND char_length(reporting_period) BETWEEN 1 AND 10`,
)
export class DecisionRecord {
  @PrimaryColumn({ name: 'decision_id', type: 'uuid', primaryKeyConstraintName: 'decision_record_pkey' })
  decisionId: string;

  @PrimaryColumn({ name: 'tenant_id', type: 'text', collation: 'C', primaryKeyConstraintName: 'decision_record_pkey' })
  tenantId: string;

  @Column({ name: 'idem_key', type: 'text', collation: 'C' })
  key: string;

  @Column({ name: 'key_source', type: 'text' })
  keySource: string;

  @Column({ name: 'content_hash', type: 'bytea' })
  contentHash: Buffer;

  @Column({ name: 'content_once', type: 'boolean', nullable: true })
  contentOnce: true | null;

  @Column({ type: 'bytea' })
  fingerprint: Buffer;

  @Column({ type: 'text', collation: 'C' })
  action: string;

  @Column({ name: 'action_version', type: 'integer' })
  actionVersion: number;

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

  /** RFC 8785 bytes of the inputs, as they were hashed. */
  @Column({ type: 'text' })
  inputs: string;

  @Column({ type: 'text', nullable: true })
  note: string | null;

  @Column({ name: 'credential_id', type: 'text', collation: 'C' })
  credentialId: string;

  @Column({ name: 'received_at', type: 'timestamptz' })
  receivedAt: Date;

  /** Of a decision whose effect is outside: what finds it by any form of its downstream key. */
  @Column({ name: 'downstream_uuid4', type: 'uuid', nullable: true })
  downstreamUuid4: string | null;
}
