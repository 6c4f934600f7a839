import type { DataSource, EntityManager, QueryRunner } from 'typeorm';
import { classifyFailure } from './failure.js';

/** A transaction under way. It is handed on as the first argument, so that whether a write is in it shows at the call. */
export type Transaction = EntityManager;

/** The session of whoever belongs to no tenant: it sees the list of tenants and the operator's credentials, no decision. */
export const OPERATOR_SCOPE = '*';

/**
 * Thrown when somebody may still send statements through the transaction after it has been given up. A rollback would not
 * stop what comes behind it, so the connection is ended: the server undoes what it had, and takes nothing more.
 */
export class Abandoned extends Error {}

/** The service's way to PostgreSQL: single statements, and transactions in a tenant's session. */
export class Database {
  constructor(readonly dataSource: DataSource) {}

  /** How many connections there are, how many are idle, and how many requests wait for one. */
  pool(): { total: number; idle: number; waiting: number } {
    const { totalCount = 0, idleCount = 0, waitingCount = 0 } = poolOf(this.dataSource);
    return { total: totalCount, idle: idleCount, waiting: waitingCount };
  }

  /** Sends one statement in a transaction of its own: one round trip. The statement enters the tenant's session itself. */
  async statement<Row>(sql: string, parameters: readonly unknown[]): Promise<Row[]> {
    const runner = this.dataSource.createQueryRunner();
    try {
      return await runner.manager.query<Row[]>(sql, [...parameters]);
    } catch (error) {
      await endIfBroken(runner, error);
      throw error;
    } finally {
      await runner.release();
    }
  }

  /**
   * Runs `work` in a transaction (READ COMMITTED) in which row-level security shows the rows of one tenant. An exception
   * in `work` rolls everything back. A connection that broke on the way is not given back to the pool.
   */
  async transaction<T>(tenant: string, work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.bare(async (tx) => {
      await enterTenant(tx, tenant);
      return work(tx);
    });
  }

  /** The same without a tenant: whoever uses it enters one, or sees nothing. */
  async bare<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    const runner = this.dataSource.createQueryRunner();
    try {
      await runner.startTransaction('READ COMMITTED');
      const result = await work(runner.manager);
      await runner.commitTransaction();
      return result;
    } catch (error) {
      if (error instanceof Abandoned) await endConnection(runner);
      else await rollBack(runner);
      await endIfBroken(runner, error);
      throw error;
    } finally {
      await runner.release();
    }
  }
}

/** The part of pg's pool that tells how busy it is; TypeORM does not say more of it than that it is there. */
function poolOf(dataSource: DataSource): Partial<Record<'totalCount' | 'idleCount' | 'waitingCount', number>> {
  const { driver } = dataSource;
  return 'master' in driver && typeof driver.master === 'object' && driver.master !== null ? driver.master : {};
}

/** Switches a transaction to another tenant's session, until it ends. */
export async function enterTenant(tx: Transaction, tenant: string): Promise<void> {
  await tx.query(`SELECT set_config('app.tenant', $1, true)`, [tenant]);
}

/** A rollback that fails leaves nothing behind either: the server ends the transaction with its connection. */
async function rollBack(runner: QueryRunner): Promise<void> {
  if (!runner.isTransactionActive) return;
  await runner.rollbackTransaction().catch(() => undefined);
}

/**
 * Ends a connection that the server has given up. Its last words arrive before its socket closes, and in between the pool
 * would hand it to the next request.
 */
async function endIfBroken(runner: QueryRunner, error: unknown): Promise<void> {
  if (classifyFailure(error) === 'unavailable' && !runner.isReleased) await endConnection(runner);
}

async function endConnection(runner: QueryRunner): Promise<void> {
  const client: { end(): Promise<void> } | null = await runner.connect().catch(() => null);
  client?.end().catch(() => undefined);
}
