import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DataSource } from 'typeorm';
import { Database, PROJECT_ROOT, readSettings } from '#database';
import { auditorGuide } from './auditor-guide.js';
import { buildDocument } from './openapi-document.js';
import { problemsPage } from './problems-page.js';
import { createServer } from './server.js';
import { PinoLogger } from './service/logger.js';

/**
 * Writes the files that are generated from the code, or with `--check` compares them with what the code says. No
 * database is needed: the data source is never opened.
 */
const app = await createServer(
  new Database(new DataSource({ type: 'postgres' })),
  readSettings({ WORKER: 'off' }),
  new PinoLogger('silent'),
);
await app.init();
const files = {
  'openapi/openapi.json': `${JSON.stringify(buildDocument(app), null, 2)}\n`,
  'docs/problems.md': problemsPage(),
  'docs/auditor-guide.md': auditorGuide(),
};
await app.close();

for (const [file, text] of Object.entries(files)) {
  const path = join(PROJECT_ROOT, file);
  if (!process.argv.includes('--check')) {
    writeFileSync(path, text);
  } else if (!existsSync(path) || readFileSync(path, 'utf8') !== text) {
    process.stderr.write(`${file} is not what the code says: run "npm run openapi" and commit it\n`);
    process.exitCode = 1;
  }
}
