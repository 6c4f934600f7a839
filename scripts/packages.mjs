import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { run } from './child.mjs';
import { Failure, ROOT } from './project.mjs';

/**
 * What of package-lock.json is not installed as it says: everything, the packages for development only, or nothing. npm
 * keeps its own account of what it installed, and writes it last, so an installation that was cut off has none.
 */
export function missingPackages() {
  const wanted = packagesOf('package-lock.json');
  const installed = packagesOf('node_modules/.package-lock.json');
  if (!installed) return 'all';
  let missing = 'none';
  for (const [path, entry] of Object.entries(wanted ?? {})) {
    const found = installed[path];
    if (path === '' || (found && found.version === entry.version && found.integrity === entry.integrity)) continue;
    // A package for another platform is never there.
    if (!found && entry.optional) continue;
    if (found || !(entry.dev || entry.devOptional)) return 'all';
    missing = 'development';
  }
  return missing;
}

function packagesOf(file) {
  try {
    return JSON.parse(readFileSync(join(ROOT, file), 'utf8')).packages;
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  }
}

/** Installs what package-lock.json says, with the packages for development, which the build needs. */
export async function installPackages() {
  process.stderr.write('decision-ledger: installing the packages\n');
  const args = ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error', '--no-progress'];
  // The npm that runs us, if one does: another one may be first in the PATH, or none.
  const npm = process.env['npm_execpath'];
  const [program, first] = npm?.endsWith('npm-cli.js') ? [process.execPath, [npm]] : ['npm', []];
  const { code, output } = await run(program, [...first, ...args], { cwd: ROOT }).catch((error) => ({
    code: 1,
    output: `${error.message}\n`,
  }));
  if (code !== 0) throw new Failure(`npm ci failed (exit ${code}):\n${output}`);
}
