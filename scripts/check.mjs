import './node-version.mjs';

import { join } from 'node:path';

import { exitCodeOf, holdSignals, interruption, run } from './child.mjs';
import { prepare } from './prepare.mjs';
import { ROOT } from './project.mjs';
import { withTestServer } from './test-server.mjs';

const module = (path) => join(ROOT, 'node_modules', path);

/** Every check is a program of Node.js that is content if it exits with 0; otherwise what it wrote says why. */
const CHECKS = [
  ['types', module('typescript/bin/tsc'), '--noEmit', '-p', 'tsconfig.json'],
  ['lint', module('oxlint/bin/oxlint'), '--type-aware', '--deny-warnings'],
  [
    'dependency rules',
    module('dependency-cruiser/bin/dependency-cruise.mjs'),
    ...['--config', '.dependency-cruiser.mjs', 'apps', 'libs', 'examples', 'test', 'bench'],
  ],
  ['formatting', module('prettier/bin/prettier.cjs'), '--check', '--log-level=warn', '.'],
  ['generated files', 'dist/apps/api/src/openapi.js', '--check'],
  ['OpenAPI document', 'scripts/lint-openapi.mjs'],
  ['schema and entities', 'dist/apps/operator/src/check-drift.js', () => process.env['TEST_DATABASE_URL']],
];

await prepare({ development: true });
const release = holdSignals();
const results = [];
try {
  await withTestServer(async () => {
    for (const check of CHECKS) {
      if (interruption()) break;
      results.push(await passes(check));
    }
  });
} catch (error) {
  process.stderr.write(`decision-ledger: ${error.name === 'EmbeddedServerError' ? error.message : error.stack}\n`);
  results.push(false);
}
release();
const passed = results.filter(Boolean).length;
process.stdout.write(`${passed} passed, ${results.length - passed} failed\n`);
process.exit(interruption() ? exitCodeOf(interruption()) : passed === CHECKS.length ? 0 : 1);

async function passes([name, ...args]) {
  const given = args.map((argument) => (typeof argument === 'function' ? argument() : argument));
  const { code, output } = await run(process.execPath, given, { cwd: ROOT });
  process.stdout.write(code === 0 ? `ok   ${name}\n` : `FAIL ${name}\n${output.trimEnd()}\n`);
  return code === 0;
}
