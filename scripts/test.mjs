import './node-version.mjs';

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { exitCodeOf, holdSignals, interruption, run } from './child.mjs';
import { prepare } from './prepare.mjs';
import { ROOT } from './project.mjs';
import { withTestServer } from './test-server.mjs';

// Usage: npm test [-- [--long] [Jest's arguments]]

/** These suites run many processes of their own; those that race would measure one another, those that kill mostly wait. */
const RACES = '/test/race/';
const CRASHES = '/test/crash/';

const given = process.argv.slice(2);
const isLong = given.includes('--long');
const rest = given.filter((argument) => argument !== '--long');
const isSelection = rest.some((argument) => !argument.startsWith('-'));
const phases = isSelection
  ? [['--runInBand', ...rest]]
  : [
      [
        '--maxWorkers=2',
        ...['/node_modules/', RACES, CRASHES].map((path) => `--testPathIgnorePatterns=${path}`),
        ...rest,
      ],
      ['--maxWorkers=2', ...rest, CRASHES],
      ['--runInBand', ...rest, RACES],
    ];

await prepare({ development: true });
const release = holdSignals();
const total = { passed: 0, failed: 0 };
try {
  await withTestServer(async () => {
    for (const phase of phases) {
      if (interruption()) break;
      const { passed, failed } = await runJest(phase);
      total.passed += passed;
      total.failed += failed;
    }
  });
} catch (error) {
  process.stderr.write(`decision-ledger: ${error.name === 'EmbeddedServerError' ? error.message : error.stack}\n`);
  total.failed += 1;
}
release();
process.stdout.write(`${total.passed} passed, ${total.failed} failed\n`);
const hasPassed = total.failed === 0 && total.passed > 0;
process.exit(interruption() ? exitCodeOf(interruption()) : hasPassed ? 0 : 1);

async function runJest(args) {
  const folder = mkdtempSync(join(tmpdir(), 'decision-ledger-jest-'));
  const countFile = join(folder, 'count.json');
  const reporters = ['default', join(ROOT, 'scripts/count.reporter.mjs')].map((name) => `--reporters=${name}`);
  try {
    const { code } = await run(
      process.execPath,
      [join(ROOT, 'node_modules/jest/bin/jest.js'), '--passWithNoTests', ...reporters, ...args],
      { cwd: ROOT, stdio: 'inherit', env: jestEnvironment(countFile) },
    );
    const counts = countsIn(countFile);
    // A run that broke off is a failure although no test of it failed.
    return code !== 0 && counts.failed === 0 ? { ...counts, failed: 1 } : counts;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function jestEnvironment(countFile) {
  const options = `${process.env['NODE_OPTIONS'] ?? ''} --experimental-vm-modules --disable-warning=ExperimentalWarning`;
  return {
    ...process.env,
    COUNT_FILE: countFile,
    NODE_OPTIONS: options.trim(),
    ...(isLong ? { TEST_LONG: '1' } : {}),
  };
}

function countsIn(countFile) {
  try {
    return JSON.parse(readFileSync(countFile, 'utf8'));
  } catch {
    return { passed: 0, failed: 1 };
  }
}
