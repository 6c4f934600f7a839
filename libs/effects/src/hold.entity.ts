import { Check, Column, Entity, PrimaryColumn } from 'typeorm';

/** The place of an effect outside, from the claim until it is applied, refused or given up. */
@Entity('hold')
@Check(
  'hold_lengths',
  `char_length(action) BETWEEN 1 AND 64 AND char_length(subject_type) BETWEEN 1 AND 255
    AND char_length(subject_id) BETWEEN 1 AND 255 AND char_length(place) <= 10`,
)
export class Hold {
  @PrimaryColumn({ name: 'subject_id', type: 'text', collation: 'C', primaryKeyConstraintName: 'hold_pkey' })
  subjectId: string;

  @PrimaryColumn({ name: 'subject_type', type: 'text', collation: 'C', primaryKeyConstraintName: 'hold_pkey' })
  subjectType: string;

  @PrimaryColumn({ type: 'text', collation: 'C', primaryKeyConstraintName: 'hold_pkey' })
  action: string;

  @PrimaryColumn({ type: 'text', collation: 'C', primaryKeyConstraintName: 'hold_pkey' })
  place: string;

  @PrimaryColumn({ name: 'tenant_id', type: 'text', collation: 'C', primaryKeyConstraintName: 'hold_pkey' })
  tenantId: string;

  @Column({ name: 'decision_id', type: 'uuid' })
  decisionId: string;
}
