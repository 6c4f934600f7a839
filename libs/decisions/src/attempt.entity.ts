import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** One arrival of a request for a key, with the evidence it carried and what became of it. Append-only. */
@Entity('attempt')
@Check(
  'attempt_disposition',
  `disposition IN ('created', 'refused', 'replayed', 'mismatch', 'in_flight', 'same_content',
   'reclaimed', 'completed', 'failed', 'unknown', 'lease_lost', 'renewed', 'resolved')`,
)
@Check(
  'attempt_lengths',
  `char_length(idem_key) BETWEEN 1 AND 255 AND char_length(request_id) BETWEEN 1 AND 128
    AND char_length(action) BETWEEN 1 AND 64 AND char_length(problem) BETWEEN 1 AND 64`,
)
@Check('attempt_evidence_lengths', 'char_length(step_id) BETWEEN 1 AND 255 AND char_length(run_id) BETWEEN 1 AND 255')
@Index('attempt_by_decision', ['decisionId', 'tenantId'])
@Index('attempt_by_time', ['tenantId', 'receivedAt', 'attemptId', 'decisionId', 'disposition', 'credentialId'])
@Index('attempt_by_step', ['stepId', 'tenantId', 'receivedAt'], { where: '(step_id IS NOT NULL)' })
@Index('attempt_by_run', ['runId', 'tenantId', 'receivedAt'], { where: '(run_id IS NOT NULL)' })
@Index('attempt_by_credential', ['credentialId', 'tenantId', 'receivedAt'])
@Index('attempt_out_of_the_ordinary', ['disposition', 'tenantId', 'receivedAt'], {
  where: `(disposition <> ALL (ARRAY['created'::text, 'replayed'::text, 'completed'::text, 'renewed'::text]))`,
})
export class Attempt {
  @PrimaryColumn({ name: 'attempt_id', type: 'uuid', primaryKeyConstraintName: 'attempt_pkey' })
  attemptId: string;

  @PrimaryColumn({ name: 'tenant_id', type: 'text', collation: 'C', primaryKeyConstraintName: 'attempt_pkey' })
  tenantId: string;

  @Column({ name: 'idem_key', type: 'text', collation: 'C' })
  key: string;

  @Column({ name: 'decision_id', type: 'uuid', nullable: true })
  decisionId: string | null;

  @Column({ type: 'text', collation: 'C' })
  action: string;

  @Column({ type: 'text', collation: 'C' })
  disposition: string;

  @Column({ type: 'boolean' })
  won: boolean;

  @Column({ type: 'jsonb', nullable: true })
  evidence: Record<string, unknown> | null;

  @Column({ name: 'request_id', type: 'text' })
  requestId: string;

  @Column({ name: 'credential_id', type: 'text', collation: 'C' })
  credentialId: string;

  @Column({ name: 'received_at', type: 'timestamptz' })
  receivedAt: Date;

  @Column({ name: 'latency_ms', type: 'double precision' })
  latencyMs: number;

  @Column({ type: 'text', nullable: true })
  problem: string | null;

  /** Of the evidence, to be looked for. */
  @Column({
    name: 'step_id',
    type: 'text',
    collation: 'C',
    nullable: true,
    generatedType: 'STORED',
    asExpression: `(evidence ->> 'stepId'::text)`,
  })
  stepId: string | null;

  @Column({
    name: 'run_id',
    type: 'text',
    collation: 'C',
    nullable: true,
    generatedType: 'STORED',
    asExpression: `(evidence ->> 'runId'::text)`,
  })
  runId: string | null;
}
