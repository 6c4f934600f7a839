import { mkdtempSync, readFileSync, rmSync, existsSync, readlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { startService, type Service, type Tokens } from './service.js';
import type { Auditable } from './audit.js';

/** A service that runs a PostgreSQL of its own in a temporary DATA_DIR, as `npm start` does with nothing set. */
export class EmbeddedHouse {
  readonly dataDir = mkdtempSync(join(tmpdir(), 'decision-ledger-'));

  start(env: Readonly<Record<string, string>> = {}): Promise<Service> {
    return startService({ DATA_DIR: this.dataDir, ...env });
  }

  /** The tokens of the tenant `demo`, which the first start writes. */
  tokens(): Tokens {
    return JSON.parse(readFileSync(join(this.dataDir, 'credentials.json'), 'utf8')).tenants.demo;
  }

  /** The process of the server that runs, or null. */
  postmaster(): number | null {
    const [pid] = this.lockFile();
    if (pid === undefined || !/^\d+$/.test(pid)) return null;
    try {
      process.kill(Number(pid), 0);
      return Number(pid);
    } catch {
      return null;
    }
  }

  /** Behind row-level security, as its superuser. A connection for each statement: the server comes and goes. */
  readonly database: Auditable = {
    query: async <Row extends pg.QueryResultRow>(sql: string, parameters: readonly unknown[] = []): Promise<Row[]> => {
      const password = readFileSync(join(this.dataDir, 'postgres-password'), 'utf8').trim();
      const port = Number(this.lockFile()[3]);
      const client = new pg.Client({
        host: '127.0.0.1',
        port,
        user: 'postgres',
        password,
        database: 'decision_ledger',
      });
      client.on('error', () => undefined);
      await client.connect();
      try {
        return (await client.query<Row>(sql, [...parameters])).rows;
      } finally {
        await client.end();
      }
    },
  };

  remove(): void {
    const cluster = join(this.dataDir, 'postgres');
    const elsewhere = existsSync(cluster) ? linkTarget(cluster) : null;
    for (const dir of [elsewhere, this.dataDir])
      if (dir !== null) rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  }

  private lockFile(): string[] {
    try {
      return readFileSync(join(this.dataDir, 'postgres/postmaster.pid'), 'utf8').split('\n');
    } catch {
      return [];
    }
  }
}

function linkTarget(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}
