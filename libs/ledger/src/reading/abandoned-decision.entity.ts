import { Entity, PrimaryColumn } from 'typeorm';

/** A decision that failed and whose key went on to another decision. Append-only. */
@Entity('abandoned_decision')
export class AbandonedDecision {
  @PrimaryColumn({ name: 'decision_id', type: 'uuid', primaryKeyConstraintName: 'abandoned_decision_pkey' })
  decisionId: string;

  @PrimaryColumn({
    name: 'tenant_id',
    type: 'text',
    collation: 'C',
    primaryKeyConstraintName: 'abandoned_decision_pkey',
  })
  tenantId: string;
}
