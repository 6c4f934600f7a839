import { Check, Column, Entity, PrimaryColumn } from 'typeorm';

/** How the lease of a decision ended whose key's record was pruned. Kept for good. */
@Entity('ended_lease')
@Check('ended_lease_hashes', 'octet_length(lease_token_sha256) = 32 AND octet_length(conclusion_sha256) = 32')
@Check('ended_lease_number', 'lease_number >= 0')
export class EndedLease {
  @PrimaryColumn({ name: 'decision_id', type: 'uuid', primaryKeyConstraintName: 'ended_lease_pkey' })
  decisionId: string;

  @PrimaryColumn({ name: 'tenant_id', type: 'text', collation: 'C', primaryKeyConstraintName: 'ended_lease_pkey' })
  tenantId: string;

  @Column({ name: 'lease_number', type: 'integer' })
  leaseNumber: number;

  @Column({ name: 'lease_token_sha256', type: 'bytea', nullable: true })
  leaseTokenSha256: Buffer | null;

  @Column({ name: 'conclusion_sha256', type: 'bytea' })
  conclusionSha256: Buffer;
}
