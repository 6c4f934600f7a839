import { Check, Column, Entity, PrimaryColumn } from 'typeorm';

/** A version of an action's rules. Append-only: decisions point at the one they were made under. */
@Entity('action_version')
@Check('action_version_name', `action ~ '^[a-z][a-z0-9_-]*(\\.[a-z][a-z0-9_-]*)*$' AND char_length(action) <= 64`)
@Check('action_version_counts_from_one', 'version >= 1')
@Check('action_version_rules_length', 'octet_length(rules) <= 1048576')
export class ActionVersion {
  @PrimaryColumn({ name: 'tenant_id', type: 'text', collation: 'C', primaryKeyConstraintName: 'action_version_pkey' })
  tenantId: string;

  @PrimaryColumn({ type: 'text', collation: 'C', primaryKeyConstraintName: 'action_version_pkey' })
  action: string;

  @PrimaryColumn({ type: 'integer', primaryKeyConstraintName: 'action_version_pkey' })
  version: number;

  /** RFC 8785 bytes of the rules, with the defaults filled in. */
  @Column({ type: 'text' })
  rules: string;

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt: Date;

  @Column({ name: 'credential_id', type: 'text', collation: 'C', nullable: true })
  credentialId: string | null;
}
