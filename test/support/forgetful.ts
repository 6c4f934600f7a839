import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PROJECT_ROOT } from '#database';
import { startService, type Service } from './service.js';

const READING = 'dist/libs/ledger/src/reading';

/** A condition on the tenant: on the one who asks, or on that of another row. */
const CONDITION = /(?:\w+\.)?\btenant_id = (?:\$1|\w+\.tenant_id)/g;

/**
 * Starts a copy of the built service in which no statement of the reading side asks for the tenant: what is left of its
 * isolation is row-level security.
 */
export async function startForgetful(databaseUrl: string): Promise<Service> {
  const root = mkdtempSync(join(tmpdir(), 'forgetful-'));
  for (const name of ['dist', 'migrations', 'examples', 'openapi', 'package.json'])
    cpSync(join(PROJECT_ROOT, name), join(root, name), { recursive: true });
  symlinkSync(join(PROJECT_ROOT, 'node_modules'), join(root, 'node_modules'));
  let forgotten = 0;
  for (const file of readdirSync(join(root, READING)).filter((name) => name.endsWith('.js'))) {
    const path = join(root, READING, file);
    const text = readFileSync(path, 'utf8').replaceAll(CONDITION, () => {
      forgotten += 1;
      // The parameter stays in the statement, or PostgreSQL would not know its type.
      return '$1::text IS NOT NULL';
    });
    writeFileSync(path, text);
  }
  if (forgotten < 30) throw new Error(`Only ${forgotten} conditions on the tenant were found`);
  try {
    return await startService({ DATABASE_URL: databaseUrl }, join(root, 'dist/apps/api/src/main.js'));
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}
