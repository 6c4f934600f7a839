import { Check, Column, Entity, PrimaryColumn } from 'typeorm';

/** The content of a decision whose effect is outside: from the claim on, and for good once there is an outcome. */
@Entity('content_hold')
@Check('content_hold_hash_length', 'octet_length(content_hash) = 20')
export class ContentHold {
  @PrimaryColumn({ name: 'content_hash', type: 'bytea', primaryKeyConstraintName: 'content_hold_pkey' })
  contentHash: Buffer;

  @PrimaryColumn({ name: 'tenant_id', type: 'text', collation: 'C', primaryKeyConstraintName: 'content_hold_pkey' })
  tenantId: string;

  @Column({ name: 'decision_id', type: 'uuid' })
  decisionId: string;
}
