import { Check, Column, Entity, ForeignKey, PrimaryColumn, Unique } from 'typeorm';

/** The record: one for each final decision, unique by key, append-only, kept for good. */
@Entity('ledger_entry')
@Unique('ledger_entry_key_once', ['key', 'tenantId'])
@Check('ledger_entry_outcome', `outcome IN ('applied', 'refused')`)
@Check('ledger_entry_applied_has_effect', `(outcome = 'applied') = (effect_id IS NOT NULL AND result IS NOT NULL)`)
@Check('ledger_entry_refused_has_reason', `(outcome = 'refused') = (reason IS NOT NULL AND refusal IS NOT NULL)`)
@Check(
  'ledger_entry_lengths',
  `char_length(idem_key) BETWEEN 1 AND 255 AND char_length(reason) BETWEEN 1 AND 255
   AND char_length(external_ref) BETWEEN 1 AND 255 AND octet_length(result) <= 1048576`,
)
@Check(
  'ledger_entry_salts',
  'octet_length(params_salt) = 32 AND octet_length(note_salt) = 32 AND octet_length(result_salt) = 32',
)
@ForeignKey('DecisionRecord', ['tenantId', 'decisionId'], ['tenantId', 'decisionId'], {
  name: 'ledger_entry_of_decision',
})
@ForeignKey('DecisionRecord', ['tenantId', 'winnerDecisionId'], ['tenantId', 'decisionId'], {
  name: 'ledger_entry_winner',
})
@ForeignKey('Effect', ['tenantId', 'effectId'], ['tenantId', 'effectId'], { name: 'ledger_entry_of_effect' })
export class LedgerEntry {
  @PrimaryColumn({ name: 'ledger_entry_id', type: 'uuid', primaryKeyConstraintName: 'ledger_entry_pkey' })
  ledgerEntryId: string;

  @PrimaryColumn({ name: 'tenant_id', type: 'text', collation: 'C', primaryKeyConstraintName: 'ledger_entry_pkey' })
  tenantId: string;

  @Column({ name: 'idem_key', type: 'text', collation: 'C' })
  key: string;

  @Column({ name: 'decision_id', type: 'uuid' })
  decisionId: string;

  @Column({ type: 'text' })
  outcome: string;

  @Column({ type: 'text', nullable: true })
  reason: string | null;

  @Column({ name: 'winner_decision_id', type: 'uuid', nullable: true })
  winnerDecisionId: string | null;

  @Column({ name: 'effect_id', type: 'uuid', nullable: true })
  effectId: string | null;

  /** RFC 8785 bytes of the effect's result. */
  @Column({ type: 'text', nullable: true })
  result: string | null;

  /** The problem that the refused caller was told, byte for byte. */
  @Column({ type: 'text', nullable: true })
  refusal: string | null;

  @Column({ name: 'external_ref', type: 'text', nullable: true })
  externalRef: string | null;

  @Column({ name: 'credential_id', type: 'text', collation: 'C' })
  credentialId: string;

  @Column({ name: 'recorded_at', type: 'timestamptz' })
  recordedAt: Date;

  @Column({ name: 'response_expires_at', type: 'timestamptz' })
  responseExpiresAt: Date;

  /** 32 random bytes each: what the digests of the params, the note and the result begin with. */
  @Column({ name: 'params_salt', type: 'bytea', default: () => 'random_salt()' })
  paramsSalt: Buffer;

  @Column({ name: 'note_salt', type: 'bytea', default: () => 'random_salt()' })
  noteSalt: Buffer;

  @Column({ name: 'result_salt', type: 'bytea', default: () => 'random_salt()' })
  resultSalt: Buffer;
}
