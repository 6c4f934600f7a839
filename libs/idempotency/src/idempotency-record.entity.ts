import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A key's working state and its stored response: a cache of identity, which may be pruned. */
@Entity('idempotency_record')
@Check('idempotency_record_key', `idem_key ~ '^[ -~]{1,255}$'`)
@Check('idempotency_record_key_source', `key_source IN ('content', 'client')`)
@Check('idempotency_record_status', `status IN ('in_flight', 'completed', 'failed', 'unknown')`)
@Check('idempotency_record_fingerprint_is_sha256', 'octet_length(fingerprint) = 32')
@Check('idempotency_record_response_is_whole', '(response_status IS NULL) = (response_body IS NULL)')
@Check('idempotency_record_final_expires', `(status = 'completed') = (expires_at IS NOT NULL)`)
@Check('idempotency_record_on_expired_lease', `on_expired_lease IN ('reclaim', 'unknown')`)
@Check(
  'idempotency_record_lease_hashes',
  `octet_length(lease_token_sha256) = 32 AND octet_length(lease_nonce_sha256) = 32 AND octet_length(conclusion_sha256) = 32`,
)
@Check('idempotency_record_lease_counts', 'lease_number >= 0 AND reclaims >= 0 AND lease_seconds > 0')
@Index('idempotency_record_by_expiry', ['tenantId', 'expiresAt'])
@Index('idempotency_record_unfinished', ['tenantId', 'lockedUntil'], { where: `(status <> 'completed'::text)` })
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

  /** The fencing number: one higher with each claim. */
  @Column({ name: 'lease_number', type: 'integer', default: 0 })
  leaseNumber: number;

  @Column({ name: 'lease_seconds', type: 'integer', nullable: true })
  leaseSeconds: number | null;

  @Column({ name: 'lease_token_sha256', type: 'bytea', nullable: true })
  leaseTokenSha256: Buffer | null;

  @Column({ name: 'lease_nonce_sha256', type: 'bytea', nullable: true })
  leaseNonceSha256: Buffer | null;

  @Column({ type: 'integer', default: 0 })
  reclaims: number;

  @Column({ name: 'on_expired_lease', type: 'text', nullable: true })
  onExpiredLease: string | null;

  /** What ended the lease, or the unknown state: tells the same report sent again from another one. */
  @Column({ name: 'conclusion_sha256', type: 'bytea', nullable: true })
  conclusionSha256: Buffer | null;
}
