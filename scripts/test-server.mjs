import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Test suites open many databases, each with connections of several processes. */
const SETTINGS = { max_connections: '300' };

/**
 * Does the work with TEST_DATABASE_URL in the environment: the server that the caller set, or one that is started for this
 * and leaves nothing behind.
 */
export async function withTestServer(work) {
  if (process.env['TEST_DATABASE_URL']) return work();
  const { startEmbeddedServer } = await import('../dist/libs/database/src/embedded-server.js');
  const dataDir = mkdtempSync(join(tmpdir(), 'decision-ledger-test-'));
  try {
    // The account that PostgreSQL runs under when we are root has to pass through.
    chmodSync(dataDir, 0o711);
    const server = await startEmbeddedServer({ dataDir, settings: SETTINGS });
    try {
      process.env['TEST_DATABASE_URL'] = server.url;
      return await work();
    } finally {
      await server.stop();
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
  }
}
