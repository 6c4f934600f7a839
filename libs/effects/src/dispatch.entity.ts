import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';

/** A decision that waits for the worker, or is with it: there exactly as long as it is in flight. */
@Entity('dispatch')
@Index('dispatch_due', ['tenantId', 'nextTryAt'])
@Check('dispatch_tries', 'tries >= 0 AND (tries > 0) = (first_try_at IS NOT NULL)')
@Check(
  'dispatch_lengths',
  'char_length(idem_key) BETWEEN 1 AND 255 AND char_length(host) BETWEEN 1 AND 300 AND char_length(request_id) BETWEEN 1 AND 128',
)
@ForeignKey('DecisionRecord', ['tenantId', 'decisionId'], ['tenantId', 'decisionId'], { name: 'dispatch_of_decision' })
export class Dispatch {
  @PrimaryColumn({ name: 'decision_id', type: 'uuid', primaryKeyConstraintName: 'dispatch_pkey' })
  decisionId: string;

  @PrimaryColumn({ name: 'tenant_id', type: 'text', collation: 'C', primaryKeyConstraintName: 'dispatch_pkey' })
  tenantId: string;

  @Column({ name: 'idem_key', type: 'text', collation: 'C' })
  key: string;

  /** Under which version of the action the call is made: that of the request that queued it. */
  @Column({ name: 'action_version', type: 'integer' })
  actionVersion: number;

  @Column({ type: 'text', collation: 'C' })
  host: string;

  @Column({ name: 'request_id', type: 'text' })
  requestId: string;

  @Column({ type: 'integer', default: 0 })
  tries: number;

  @Column({ name: 'first_try_at', type: 'timestamptz', nullable: true })
  firstTryAt: Date | null;

  /** While a worker is at it: when its lease ends, and others may take it over. */
  @Column({ name: 'next_try_at', type: 'timestamptz' })
  nextTryAt: Date;

  @Column({ name: 'may_have_happened', type: 'boolean' })
  mayHaveHappened: boolean;
}
