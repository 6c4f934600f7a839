import { createHash, randomBytes } from 'node:crypto';
import {
  chmod,
  chown,
  link,
  lstat,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  readlink,
  realpath,
  rename,
  rm,
  rmdir,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';

import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';

import { serverAccount } from './embedded-account.js';
import { SHARED_STATE_DIR, findBinaries, makeSharedDir, type Binaries } from './embedded-binaries.js';
import { EmbeddedServerError, errorCode } from './embedded-error.js';
import { canReach, isAlive, run, type Account } from './embedded-process.js';

/** A PostgreSQL cluster that is complete on disk, and all that is needed to run its server. */
export interface Cluster {
  readonly dataDir: string;
  /** The real path: what a running server shows on its command line. */
  readonly dir: string;
  readonly password: string;
  readonly logFile: string;
  readonly binaries: Binaries;
  readonly account: Account | undefined;
}

type Log = (line: string) => void;

const INITDB_OPTIONS = [
  '--username=postgres',
  '--auth=scram-sha-256',
  '--encoding=UTF8',
  '--locale=C',
  '--locale-provider=builtin',
  '--builtin-locale=C.UTF-8',
  '--data-checksums',
  '--no-instructions',
];

/** Unfinished clusters of this process, which may be making two at once: not to be swept away as leftovers. */
const beingMade = new Set<string>();

/** Makes the cluster of a data directory, or finds the one that is there. Any number of processes may do so at once. */
export async function prepareCluster(dataDirOption: string, log: Log): Promise<Cluster> {
  const wanted = resolve(dataDirOption);
  await makeDir(wanted);
  const dataDir = await realpath(wanted);
  const path = join(dataDir, 'postgres');
  const account = await serverAccount(path);
  // Written before the cluster is: a cluster without its password would be of no use.
  const password = await keepPassword(join(dataDir, 'postgres-password'));
  const dir = await chooseDir(dataDir, path, account, log);
  const binaries = await findBinaries(account);
  await removeLeftovers(dir);
  if (!(await isComplete(dir))) await makeCluster(dir, password, binaries, account);
  return { dataDir, dir: await realpath(dir), password, logFile: join(dataDir, 'postgres.log'), binaries, account };
}

/** Unlike `mkdir` with `recursive`, which runs for ever where a file system refuses new folders with ENOENT (/proc). */
async function makeDir(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) return;
  if (dirname(path) !== path) await makeDir(dirname(path));
  await mkdir(path).catch(async (error: unknown) => {
    // Another start may have made it.
    if (errorCode(error) !== 'EEXIST' || !(await stat(path)).isDirectory()) throw error;
  });
}

async function keepPassword(path: string): Promise<string> {
  const draft = `${path}.new-${process.pid}-${randomBytes(4).toString('hex')}`;
  try {
    // A hard link appears whole or not at all and never replaces the password that another start has written.
    if (!(await lstat(path).catch(() => undefined))) {
      await writeFile(draft, randomBytes(32).toString('hex'), { mode: 0o600, flag: 'wx', flush: true });
      await link(draft, path).catch((error: unknown) => {
        if (errorCode(error) !== 'EEXIST') throw error;
      });
    }
  } finally {
    await rm(draft, { force: true });
  }
  return (await readFile(path, 'utf8')).trim();
}

/** Where the cluster lives: in the data directory, unless the server's account has no way into it. */
async function chooseDir(dataDir: string, path: string, account: Account | undefined, log: Log): Promise<string> {
  const found = await lstat(path).catch(() => undefined);
  if (found?.isSymbolicLink()) return resolve(dataDir, await readlink(path));
  if (found?.isFile())
    throw new EmbeddedServerError(`DATA_DIR ${dataDir} cannot be used: ${path} is a file, not a folder`);
  if (!account || (await canReach(dataDir, account, 'enter'))) return path;
  if (await openToGroup(dataDir, account)) {
    log(`gave the group of user id ${account.uid} a way through ${dataDir}, because PostgreSQL does not run as root`);
    return path;
  }
  if (found) {
    throw new EmbeddedServerError(
      `DATA_DIR ${dataDir} cannot be used: user id ${account.uid}, which runs PostgreSQL, has no way into it`,
    );
  }

  const elsewhere = await makeFolderElsewhere(dataDir, account);
  try {
    // The link comes before the cluster: a crash between the two leaves a link to nothing, which the next start fills.
    await symlink(join(elsewhere, 'postgres'), path);
    log(
      `user id ${account.uid}, which runs PostgreSQL, has no way into ${dataDir}: the database is kept in ${elsewhere}`,
    );
  } catch (error) {
    await rmdir(elsewhere);
    if (errorCode(error) !== 'EEXIST') throw error;
  }
  return chooseDir(dataDir, path, account, log);
}

/**
 * A folder of ours that the account can pass through. The name is random: what a data directory that was deleted left
 * behind must not come back to life under its successor. What is temporary stays among the temporary.
 */
async function makeFolderElsewhere(dataDir: string, account: Account): Promise<string> {
  const temporary = await realpath(tmpdir());
  const isTemporary = dataDir.startsWith(`${temporary}/`) && (await canReach(temporary, account, 'enter'));
  if (!isTemporary) await makeSharedDir(SHARED_STATE_DIR);
  const hash = createHash('sha256').update(dataDir).digest('hex').slice(0, 12);
  const folder = await mkdtemp(join(isTemporary ? temporary : SHARED_STATE_DIR, `decision-ledger-${hash}-`));
  await chmod(folder, 0o711);
  return folder;
}

/** A private folder of ours (such as mkdtemp makes) is opened to the account's group alone, and only to pass through. */
async function openToGroup(dataDir: string, account: Account): Promise<boolean> {
  const before = await stat(dataDir);
  if (before.uid !== 0 || (before.mode & 0o077) !== 0 || !(await canReach(dirname(dataDir), account, 'enter')))
    return false;
  await chown(dataDir, before.uid, account.gid);
  await chmod(dataDir, (before.mode & 0o7777) | 0o010);
  return canReach(dataDir, account, 'enter');
}

async function isComplete(dir: string): Promise<boolean> {
  const entries = await readdir(dir).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  });
  if (entries.length === 0) return false;
  if (await stat(join(dir, 'global/pg_control')).catch(() => undefined)) return true;
  // Never made by us in this state (see makeCluster). To start an empty ledger over a damaged one would repeat every effect.
  throw new EmbeddedServerError(
    `${dir} is not a whole PostgreSQL cluster (no global/pg_control): restore it or move it away`,
  );
}

/** Makes the cluster beside its place and moves it there whole, so a crash at any instant leaves no half of one. */
async function makeCluster(dir: string, password: string, binaries: Binaries, account?: Account): Promise<void> {
  const draft = `${dir}.new-${process.pid}-${randomBytes(4).toString('hex')}`;
  const passwordFile = `${draft}.password`;
  beingMade.add(basename(draft)).add(basename(passwordFile));
  try {
    await mkdir(draft, { mode: 0o700 });
    await writeFile(passwordFile, password, { mode: 0o600, flag: 'wx' });
    if (account) await Promise.all([draft, passwordFile].map((path) => chown(path, account.uid, account.gid)));
    const made = await run(binaries.initdb, [...INITDB_OPTIONS, '-D', draft, `--pwfile=${passwordFile}`], account);
    if (made.code !== 0) {
      const reason = made.output.split('\n').filter((line) => /error|fatal|could not/i.test(line));
      throw new EmbeddedServerError(`The database in ${dir} could not be made: ${reason.at(0) ?? made.output.trim()}`);
    }
    await rename(draft, dir).catch((error: unknown) => {
      // Another start was faster; its cluster has the same password.
      if (!['ENOTEMPTY', 'EEXIST'].includes(errorCode(error) ?? '')) throw error;
    });
  } finally {
    await Promise.all([draft, passwordFile].map((path) => rm(path, { recursive: true, force: true, maxRetries: 3 })));
    beingMade.delete(basename(draft));
    beingMade.delete(basename(passwordFile));
  }
}

/** Removes what starts that were killed half-way left behind. A leftover that resists does no harm. */
async function removeLeftovers(dir: string): Promise<void> {
  const siblings = await readdir(dirname(dir));
  for (const name of siblings.filter((sibling) => sibling.startsWith(`${basename(dir)}.new-`))) {
    const pid = Number(/\.new-(\d+)-/.exec(name)?.[1]);
    if (beingMade.has(name) || (pid !== process.pid && isAlive(pid))) continue;
    await rm(join(dirname(dir), name), { recursive: true, force: true, maxRetries: 3 }).catch(() => undefined);
  }
}
