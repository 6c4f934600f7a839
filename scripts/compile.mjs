import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

import { run } from './child.mjs';
import { Failure, ROOT } from './project.mjs';

const DIST = join(ROOT, 'dist');
const STAMP = '.build-stamp';
const SOURCES = ['apps', 'libs', 'examples'];
const CONFIGURATION = ['package.json', 'tsconfig.json', 'tsconfig.build.json'];

/** Whether `dist` was built from just these sources. Contents count, not times: a clone or an image changes the times. */
export function isBuilt() {
  try {
    return readFileSync(join(DIST, STAMP), 'utf8') === sourceHash();
  } catch (error) {
    if (error.code === 'ENOENT') return false;
    throw error;
  }
}

function sourceHash() {
  const hash = createHash('sha256');
  for (const file of [...CONFIGURATION.map((name) => join(ROOT, name)), ...SOURCES.flatMap(codeFiles)]) {
    const content = readFileSync(file);
    hash.update(`${relative(ROOT, file)}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex');
}

function codeFiles(folder) {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.[cm]?ts$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

/**
 * Compiles into a folder of its own that then takes the place of `dist`: who runs from `dist` meanwhile sees the old files
 * or the new ones, and no file of a source that is gone stays behind.
 */
export async function compile() {
  removeOldAttempts();
  const draft = `${DIST}.new-${process.pid}`;
  const stamp = sourceHash();
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  try {
    const { code, output } = await run(process.execPath, [compiler, '-p', 'tsconfig.build.json', '--outDir', draft], {
      cwd: ROOT,
    });
    if (code !== 0) throw new Failure(`The build failed:\n${output}`);
    writeFileSync(join(draft, STAMP), stamp);
    const old = `${DIST}.old-${process.pid}`;
    moveIfThere(DIST, old);
    renameSync(draft, DIST);
    rmSync(old, { recursive: true, force: true });
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

function moveIfThere(from, to) {
  try {
    renameSync(from, to);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
}

/** Only one process compiles at a time (see prepare.mjs), so whatever is there was left by one that was killed. */
function removeOldAttempts() {
  for (const name of readdirSync(ROOT)) {
    if (/^dist\.(new|old)-\d+$/.test(name)) rmSync(join(ROOT, name), { recursive: true, force: true });
  }
}
