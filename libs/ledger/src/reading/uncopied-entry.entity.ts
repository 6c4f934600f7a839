import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A ledger entry that the reading copy does not have yet. */
@Entity('uncopied_entry')
export class UncopiedEntry {
  @PrimaryColumn({ name: 'tenant_id', type: 'text', collation: 'C', primaryKeyConstraintName: 'uncopied_entry_pkey' })
  tenantId: string;

  @PrimaryColumn({ name: 'decision_id', type: 'uuid', primaryKeyConstraintName: 'uncopied_entry_pkey' })
  decisionId: string;

  @Column({ name: 'ledger_entry_id', type: 'uuid' })
  ledgerEntryId: string;

  /** The transaction that recorded it. */
  @Column({ name: 'recorded_in', type: 'bigint', default: () => 'this_transaction()' })
  recordedIn: string;
}
