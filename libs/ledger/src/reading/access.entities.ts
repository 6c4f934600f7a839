import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';

/** A reading of the records, from before its answer's first byte. Append-only. */
@Entity('access')
@Check(
  'access_lengths',
  `char_length(credential_id) BETWEEN 1 AND 64 AND char_length(request_id) BETWEEN 1 AND 128 AND char_length(method) BETWEEN 1 AND 10
    AND char_length(route) BETWEEN 1 AND 255 AND octet_length(filters) <= 65536`,
)
@Index('access_by_time', ['tenantId', 'at', 'accessId'])
@Index('access_by_credential', ['credentialId', 'tenantId', 'at'])
export class AccessRecord {
  @PrimaryColumn({ name: 'access_id', type: 'uuid', primaryKeyConstraintName: 'access_pkey' })
  accessId: string;

  @PrimaryColumn({ name: 'tenant_id', type: 'text', collation: 'C', primaryKeyConstraintName: 'access_pkey' })
  tenantId: string;

  @Column({ type: 'timestamptz' })
  at: Date;

  @Column({ name: 'credential_id', type: 'text', collation: 'C' })
  credentialId: string;

  @Column({ name: 'request_id', type: 'text' })
  requestId: string;

  @Column({ type: 'text' })
  method: string;

  @Column({ type: 'text', collation: 'C' })
  route: string;

  /** JSON: the parameters as they were sent. */
  @Column({ type: 'text' })
  filters: string;
}

/** How a reading ended. Append-only. */
@Entity('access_end')
@Check('access_end_rows', 'rows >= 0')
@ForeignKey('AccessRecord', ['tenantId', 'accessId'], ['tenantId', 'accessId'], { name: 'access_end_of_access' })
export class AccessEnd {
  @PrimaryColumn({ name: 'access_id', type: 'uuid', primaryKeyConstraintName: 'access_end_pkey' })
  accessId: string;

  @PrimaryColumn({ name: 'tenant_id', type: 'text', collation: 'C', primaryKeyConstraintName: 'access_end_pkey' })
  tenantId: string;

  @Column({ type: 'bigint' })
  rows: string;

  @Column({ type: 'boolean' })
  finished: boolean;

  @Column({ type: 'timestamptz' })
  at: Date;
}
