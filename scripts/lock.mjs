import { linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 100;
/** No install and no build takes this long; the process that the file names is another one by now. */
const STALE_AFTER_MS = 15 * 60_000;

/**
 * Does the work while no other process does the like. The file holds the number of the process that works; a file that a
 * killed process left behind counts for nothing.
 */
export async function whileLocked(file, work) {
  while (!take(file)) {
    if (isStale(file)) removeStale(file);
    else await sleep(POLL_MS);
  }
  try {
    return await work();
  } finally {
    rmSync(file, { force: true });
  }
}

/** A hard link appears with its content or not at all: nobody reads a lock without a number. */
function take(file) {
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, String(process.pid));
  try {
    linkSync(draft, file);
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

function isStale(file) {
  try {
    const age_ms = Date.now() - statSync(file).mtimeMs;
    return age_ms > STALE_AFTER_MS || !isAlive(Number(readFileSync(file, 'utf8')));
  } catch {
    return false;
  }
}

/** Moved first and looked at again, so that a lock which was taken this very instant is put back. */
function removeStale(file) {
  const aside = `${file}.stale.${process.pid}`;
  try {
    renameSync(file, aside);
    if (!isStale(aside)) linkSync(aside, file);
  } catch (error) {
    if (error.code !== 'ENOENT' && error.code !== 'EEXIST') throw error;
  } finally {
    rmSync(aside, { force: true });
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}
