import { Check, Column, Entity, Index, PrimaryColumn, Unique } from 'typeorm';

/** The isolation boundary. */
@Entity('tenant')
@Check('tenant_slug', `tenant_id ~ '^[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?$'`)
export class Tenant {
  @PrimaryColumn({ name: 'tenant_id', type: 'text', collation: 'C', primaryKeyConstraintName: 'tenant_pkey' })
  tenantId: string;

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt: Date;
}

/**
 * What stands for a tenant and a role: a secret, of which only the hash is kept, or a subject for whom an OpenID provider
 * vouches.
 */
@Entity('credential')
@Check('credential_role', `role IN ('operator', 'admin', 'orchestrator', 'auditor')`)
@Check('credential_operator_has_no_tenant', `(role = 'operator') = (tenant_id = '*')`)
@Check('credential_secret_is_sha256', 'octet_length(secret_sha256) = 32')
@Check('credential_lengths', 'char_length(credential_id) BETWEEN 1 AND 64 AND char_length(name) BETWEEN 1 AND 255')
@Check(
  'credential_identity_lengths',
  'char_length(issuer) BETWEEN 1 AND 512 AND char_length(subject) BETWEEN 1 AND 255',
)
@Check(
  'credential_identity_has_no_secret',
  `(issuer IS NULL) = (subject IS NULL) AND (issuer IS NULL OR (role <> 'operator' AND secret_sha256 = decode(repeat('00', 32), 'hex')))`,
)
@Unique('credential_one_for_each_identity', ['subject', 'issuer', 'role', 'tenantId'])
@Index('credential_by_tenant', ['tenantId', 'createdAt'])
export class Credential {
  @PrimaryColumn({ name: 'credential_id', type: 'text', collation: 'C', primaryKeyConstraintName: 'credential_pkey' })
  credentialId: string;

  @PrimaryColumn({ name: 'tenant_id', type: 'text', collation: 'C', primaryKeyConstraintName: 'credential_pkey' })
  tenantId: string;

  @Column({ type: 'text', collation: 'C' })
  role: string;

  @Column({ type: 'text' })
  name: string;

  @Column({ name: 'secret_sha256', type: 'bytea' })
  secretSha256: Buffer;

  @Column({ name: 'created_at', type: 'timestamptz', default: () => 'now()' })
  createdAt: Date;

  @Column({ name: 'expires_at', type: 'timestamptz', nullable: true })
  expiresAt: Date | null;

  @Column({ name: 'revoked_at', type: 'timestamptz', nullable: true })
  revokedAt: Date | null;

  @Column({ name: 'last_used_at', type: 'timestamptz', nullable: true })
  lastUsedAt: Date | null;

  @Column({ type: 'text', collation: 'C', nullable: true })
  issuer: string | null;

  @Column({ type: 'text', collation: 'C', nullable: true })
  subject: string | null;
}
