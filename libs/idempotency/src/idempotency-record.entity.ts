import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A key's working state and its stored response: a cache of identity, which may be pruned. */
@Entity('idempotency_record')
@Check('idempotency_record_key', `idem_key ~ '^[ -~]{1,255}$'`)
@Check('idempotency_record_key_source', `key_source IN ('content', 'client')`)
@Check('idempotency_record_status', `status IN ('in_flight', 'completed', 'failed', 'unknown')`)
@Check('idempotency_record_fingerprint_is_sha256', 'octet_length(fingerprint) = 32')
@Check('idempotency_record_response_is_whole', '(response_status IS NULL) = (response_body IS NULL)')
@Check('idempotency_record_final_expires', `(status = 'completed') = (expires_at IS NOT NULL)`)
@Index('idempotency_record_by_expiry', ['tenantId', 'expiresAt'])
export class IdempotencyRecord {
  @PrimaryColumn({
    name: 'idem_key',
    type: 'text',
    collation: 'C',
    primaryKeyConstraintName: 'idempotency_record_pkey',
  })
  key: string;

  @PrimaryColumn({
    name: 'tenant_id',
    type: 'text',
    collation: 'C',
    primaryKeyConstraintName: 'idempotency_record_pkey',
  })
  tenantId: string;

  @Column({ name: 'key_source', type: 'text' })
  keySource: string;

  @Column({ type: 'bytea' })
  fingerprint: Buffer;

  @Column({ name: 'decision_id', type: 'uuid' })
  decisionId: string;

  @Column({ type: 'text' })
  status: string;

  @Column({ name: 'locked_until', type: 'timestamptz', nullable: true })
  lockedUntil: Date | null;

  @Column({ name: 'response_status', type: 'smallint', nullable: true })
  responseStatus: number | null;

  @Column({ name: 'response_body', type: 'text', nullable: true })
  responseBody: string | null;

  @Column({ name: 'created_at', type: 'timestamptz' })
  createdAt: Date;

  @Column({ name: 'expires_at', type: 'timestamptz', nullable: true })
  expiresAt: Date | null;
}
