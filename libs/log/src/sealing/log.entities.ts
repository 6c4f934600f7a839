import { Check, Column, Entity, ForeignKey, PrimaryColumn, Unique } from 'typeorm';

/** A ledger entry without a place in the tree. */
@Entity('unsealed_entry')
export class UnsealedEntry {
  @PrimaryColumn({ name: 'tenant_id', type: 'text', collation: 'C', primaryKeyConstraintName: 'unsealed_entry_pkey' })
  tenantId: string;

  @PrimaryColumn({ name: 'recorded_at', type: 'timestamptz', primaryKeyConstraintName: 'unsealed_entry_pkey' })
  recordedAt: Date;

  @PrimaryColumn({ name: 'ledger_entry_id', type: 'uuid', primaryKeyConstraintName: 'unsealed_entry_pkey' })
  ledgerEntryId: string;
}

/** A leaf of the tree, as the bytes that were hashed. Append-only. */
@Entity('log_leaf')
@Unique('log_leaf_entry_once', ['ledgerEntryId', 'tenantId'])
@Check('log_leaf_index', 'leaf_index >= 0')
@Check('log_leaf_length', 'octet_length(leaf) BETWEEN 2 AND 65535')
@ForeignKey('LedgerEntry', ['tenantId', 'ledgerEntryId'], ['tenantId', 'ledgerEntryId'], { name: 'log_leaf_of_entry' })
export class LogLeaf {
  @PrimaryColumn({ name: 'tenant_id', type: 'text', collation: 'C', primaryKeyConstraintName: 'log_leaf_pkey' })
  tenantId: string;

  @PrimaryColumn({ name: 'leaf_index', type: 'bigint', primaryKeyConstraintName: 'log_leaf_pkey' })
  leafIndex: string;

  @Column({ name: 'ledger_entry_id', type: 'uuid' })
  ledgerEntryId: string;

  @Column({ type: 'text' })
  leaf: string;
}

/** The hashes of one tile that there are so far. */
@Entity('log_tile')
@Check('log_tile_place', 'level BETWEEN 0 AND 63 AND tile_index >= 0')
@Check('log_tile_length', 'octet_length(hashes) BETWEEN 32 AND 8192 AND octet_length(hashes) % 32 = 0')
export class LogTile {
  @PrimaryColumn({ name: 'tenant_id', type: 'text', collation: 'C', primaryKeyConstraintName: 'log_tile_pkey' })
  tenantId: string;

  @PrimaryColumn({ type: 'integer', primaryKeyConstraintName: 'log_tile_pkey' })
  level: number;

  @PrimaryColumn({ name: 'tile_index', type: 'bigint', primaryKeyConstraintName: 'log_tile_pkey' })
  tileIndex: string;

  @Column({ type: 'bytea' })
  hashes: Buffer;
}

/** How far a tenant's tree has grown, and how far it is signed. */
@Entity('log_tree')
@Check('log_tree_sizes', 'signed_size BETWEEN 0 AND tree_size')
@Check('log_tree_root', 'octet_length(root) = 32')
@Check('log_tree_signed', '(checkpoint IS NULL) = (signed_at IS NULL) AND (checkpoint IS NOT NULL OR signed_size = 0)')
@Check('log_tree_lengths', 'octet_length(checkpoint) BETWEEN 1 AND 65536')
export class LogTree {
  @PrimaryColumn({ name: 'tenant_id', type: 'text', collation: 'C', primaryKeyConstraintName: 'log_tree_pkey' })
  tenantId: string;

  /** Which tree this is, wherever a backup of it is restored. */
  @Column({ name: 'log_id', type: 'uuid' })
  logId: string;

  @Column({ name: 'tree_size', type: 'bigint' })
  treeSize: string;

  @Column({ type: 'bytea' })
  root: Buffer;

  @Column({ name: 'signed_size', type: 'bigint' })
  signedSize: string;

  /** The signed note, byte for byte. */
  @Column({ type: 'text', nullable: true })
  checkpoint: string | null;

  @Column({ name: 'signed_at', type: 'timestamptz', nullable: true })
  signedAt: Date | null;
}

/** A key that checkpoints of the tenant were ever signed with, as verifiers take it. Append-only. */
@Entity('log_key')
@Check('log_key_lengths', 'char_length(verifier_key) BETWEEN 1 AND 512')
export class LogKey {
  @PrimaryColumn({ name: 'verifier_key', type: 'text', collation: 'C', primaryKeyConstraintName: 'log_key_pkey' })
  verifierKey: string;

  @PrimaryColumn({ name: 'tenant_id', type: 'text', collation: 'C', primaryKeyConstraintName: 'log_key_pkey' })
  tenantId: string;

  @Column({ name: 'added_at', type: 'timestamptz', default: () => 'clock_timestamp()' })
  addedAt: Date;
}
