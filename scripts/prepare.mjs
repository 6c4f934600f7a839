import './node-version.mjs';

import { join } from 'node:path';

import { exitCodeOf, holdSignals, interruption } from './child.mjs';
import { compile, isBuilt } from './compile.mjs';
import { whileLocked } from './lock.mjs';
import { installPackages, missingPackages } from './packages.mjs';
import { Failure, ROOT } from './project.mjs';

const LOCK = join(ROOT, '.prepare-lock');

/**
 * Makes the clone ready to run: installs the packages and compiles, where either is not up to date. Writes nothing if
 * nothing is to be done, so a clone that is ready may be read-only. Ends the process with one message if it cannot.
 *
 * `development` says whether the packages for tests and checks are needed, also if the build is up to date.
 */
export async function prepare({ development = false } = {}) {
  const release = holdSignals();
  try {
    if (!isReady(development)) await whileLocked(LOCK, () => makeReady(development));
  } catch (error) {
    if (interruption()) process.exit(exitCodeOf(interruption()));
    explain(error);
    process.exit(1);
  } finally {
    release();
  }
  if (interruption()) process.exit(exitCodeOf(interruption()));
}

function isReady(development) {
  const missing = missingPackages();
  return missing !== 'all' && (missing === 'none' || !development) && isBuilt();
}

/** Looks again at each step: another process may have done the work while this one waited. */
async function makeReady(development) {
  const missing = missingPackages();
  if (missing === 'all' || (missing === 'development' && (development || !isBuilt()))) await installPackages();
  if (!isBuilt()) await compile();
}

function explain(error) {
  const isExpected = error instanceof Failure || error.syscall !== undefined;
  const code = ['EROFS', 'EACCES', 'EPERM'].includes(error.code) ? ': the folder cannot be written' : '';
  const message = isExpected ? `${error.message.trimEnd()}${code}` : error.stack;
  process.stderr.write(`decision-ledger: ${message}\n`);
}
