import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DataSource } from 'typeorm';
import { Database, PROJECT_ROOT, readSettings } from '#database';
import { buildDocument } from './openapi-document.js';
import { createServer } from './server.js';
import { PinoLogger } from './service/logger.js';

/**
 * Writes `openapi/openapi.json`, or with `--check` compares it with what the code says. No database is needed: nothing
 * is asked of it, and its data source is never opened.
 */
const FILE = join(PROJECT_ROOT, 'openapi', 'openapi.json');

const app = await createServer(
  new Database(new DataSource({ type: 'postgres' })),
  readSettings({ WORKER: 'off' }),
  new PinoLogger('silent'),
);
await app.init();
const text = `${JSON.stringify(buildDocument(app), null, 2)}\n`;
await app.close();

if (!process.argv.includes('--check')) {
  writeFileSync(FILE, text);
} else if (!existsSync(FILE) || readFileSync(FILE, 'utf8') !== text) {
  process.stderr.write('openapi/openapi.json is not what the code says: run "npm run openapi" and commit it\n');
  process.exitCode = 1;
}
