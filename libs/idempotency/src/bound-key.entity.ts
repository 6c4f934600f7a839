import { Check, Column, Entity, PrimaryColumn } from 'typeorm';

/** A key that was resolved to another key's decision, because it carried the same content. Kept for good. */
@Entity('bound_key')
@Check('bound_key_key', `idem_key ~ '^[ -~]{1,255}$'`)
@Check('bound_key_key_source', `key_source IN ('content', 'client')`)
@Check('bound_key_fingerprint_is_sha256', 'octet_length(fingerprint) = 32')
export class BoundKey {
  @PrimaryColumn({ name: 'idem_key', type: 'text', collation: 'C', primaryKeyConstraintName: 'bound_key_pkey' })
  key: string;

  @PrimaryColumn({ name: 'tenant_id', type: 'text', collation: 'C', primaryKeyConstraintName: 'bound_key_pkey' })
  tenantId: string;

  @Column({ name: 'key_source', type: 'text' })
  keySource: string;

  @Column({ type: 'bytea' })
  fingerprint: Buffer;

  @Column({ name: 'decision_id', type: 'uuid' })
  decisionId: string;

  @Column({ name: 'bound_at', type: 'timestamptz' })
  boundAt: Date;
}
