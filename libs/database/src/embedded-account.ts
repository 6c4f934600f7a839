import { readFile, stat } from 'node:fs/promises';

import { EmbeddedServerError } from './embedded-error.js';
import { run, type Account } from './embedded-process.js';

/** How the systems in use make an account without a login: shadow-utils, then busybox. */
const WAYS_TO_CREATE = [
  ['useradd', '--system', '--no-create-home', '--home-dir', '/nonexistent', '--shell', '/usr/sbin/nologin', 'postgres'],
  ['adduser', '-S', '-D', '-H', 'postgres'],
] as const;

/**
 * PostgreSQL refuses to run as root. Returns the account to run it under, or undefined when this process is not root and
 * its own account will do. A cluster that exists runs under its owner: PostgreSQL accepts no other.
 */
export async function serverAccount(clusterDir: string): Promise<Account | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const owner = await stat(clusterDir).catch(() => undefined);
  if (owner && owner.uid !== 0) return usable({ uid: owner.uid, gid: owner.gid });
  return usable((await lookUp('postgres')) ?? (await create()) ?? (await lookUp('nobody')));
}

async function create(): Promise<Account | undefined> {
  for (const [program, ...args] of WAYS_TO_CREATE) {
    await run(program, args).catch(() => undefined);
    // Looked up whatever the program said: another start may have made the account at the same instant.
    const account = await lookUp('postgres');
    if (account) return account;
  }
  return undefined;
}

async function lookUp(name: string): Promise<Account | undefined> {
  const lines = (await readFile('/etc/passwd', 'utf8').catch(() => '')).split('\n');
  const [, , uid, gid] = lines.find((line) => line.startsWith(`${name}:`))?.split(':') ?? [];
  return uid && gid && uid !== '0' ? { uid: Number(uid), gid: Number(gid) } : undefined;
}

async function usable(account: Account | undefined): Promise<Account> {
  const hint = 'run the service under an ordinary account, or set DATABASE_URL to a PostgreSQL server';
  if (!account) throw new EmbeddedServerError(`PostgreSQL does not run as root and there is no other account: ${hint}`);
  const tried = await run('/bin/sh', ['-c', 'true'], account).catch((error: Error) => ({ code: error.message }));
  if (tried.code === 0) return account;
  throw new EmbeddedServerError(
    `PostgreSQL does not run as root and user id ${account.uid} cannot be assumed (${tried.code}): ${hint}`,
  );
}
