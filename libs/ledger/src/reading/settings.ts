import type { Transaction } from '#database';

/**
 * How PostgreSQL is to look for rows, until the transaction ends, whatever it thinks of the cost. A page is small and found
 * by an index: another process, or code compiled for one statement, takes longer to begin than the page takes. Sent as one
 * statement.
 */
export async function lookForFew(tx: Transaction): Promise<void> {
  await tx.query('SET LOCAL enable_seqscan = off; SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL jit = off');
}

/** The same for many rows that are gathered, counted or put in order: those take memory, and processes may help. */
export async function lookForMany(tx: Transaction): Promise<void> {
  await tx.query(`SET LOCAL enable_seqscan = off; SET LOCAL work_mem = '64MB'; SET LOCAL jit = off`);
}
