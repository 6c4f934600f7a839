import { Check, Column, Entity, ForeignKey, PrimaryColumn, Unique } from 'typeorm';

/** What changed in the system of record. For a declarative action this row is the business write. Append-only. */
@Entity('effect')
@Unique('effect_place_once', ['subjectId', 'subjectType', 'action', 'place', 'tenantId'])
@Check(
  'effect_lengths',
  `char_length(action) BETWEEN 1 AND 64 AND char_length(subject_type) BETWEEN 1 AND 255
    AND char_length(subject_id) BETWEEN 1 AND 255 AND char_length(reporting_period) BETWEEN 1 AND 10 AND char_length(place) <= 10`,
)
@ForeignKey('DecisionRecord', ['tenantId', 'decisionId'], ['tenantId', 'decisionId'], { name: 'effect_of_decision' })
export class Effect {
  @PrimaryColumn({ name: 'effect_id', type: 'uuid', primaryKeyConstraintName: 'effect_pkey' })
  effectId: string;

  @PrimaryColumn({ name: 'tenant_id', type: 'text', collation: 'C', primaryKeyConstraintName: 'effect_pkey' })
  tenantId: string;

  @Column({ name: 'decision_id', type: 'uuid' })
  decisionId: string;

  @Column({ type: 'text', collation: 'C' })
  action: string;

  @Column({ name: 'subject_type', type: 'text', collation: 'C' })
  subjectType: string;

  @Column({ name: 'subject_id', type: 'text', collation: 'C' })
  subjectId: string;

  @Column({ name: 'reporting_period', type: 'text', collation: 'C', nullable: true })
  reportingPeriod: string | null;

  /** NULL where the action does not say "once"; '' for once a subject; the period for once a period. */
  @Column({ type: 'text', collation: 'C', nullable: true })
  place: string | null;

  @Column({ name: 'applied_at', type: 'timestamptz' })
  appliedAt: Date;
}
