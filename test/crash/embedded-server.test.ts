import { spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

import { afterAll, describe, expect, it } from '@jest/globals';

import { cleanUp, eventually, isRunnableBy, Owner, postmasterPid, query, temporaryDir } from './embedded-owner.js';

const isRoot = process.getuid?.() === 0;
const NOBODY = 65_534;
const itAsRoot = isRoot ? it : it.skip;
const asRoot = isRoot ? '' : ' (left out: needs root)';
/** Root can try what an ordinary account may do, if that account can read this clone and run this Node.js. */
const canBeNobody = isRoot && isRunnableBy(NOBODY);
const itAsNobody = canBeNobody ? it : it.skip;
const asNobody = canBeNobody ? '' : ' (left out: needs root, and a clone that others can read)';
const itAsOrdinary = canBeNobody || !isRoot ? it : it.skip;
const asOrdinary = canBeNobody || !isRoot ? '' : asNobody;

afterAll(cleanUp);

async function stopped(owner: Owner): Promise<void> {
  await owner.kill('SIGTERM');
  expect(owner.events).toContainEqual({ stopped: true });
}

describe('an embedded server', () => {
  it('starts in a data directory that is not there yet, for its owner alone', async () => {
    const dataDir = join(temporaryDir(0o755), 'new/data');
    const owner = Owner.start(dataDir);
    const url = await owner.url();
    const { port } = await owner.outcome();
    expect(url).toMatch(new RegExp(`^postgres://postgres:[0-9a-f]{64}@127\\.0\\.0\\.1:${port}/postgres$`));
    expect(statSync(join(dataDir, 'postgres-password')).mode & 0o777).toBe(0o600);
    expect(await query(url, "SELECT current_setting('fsync')")).toEqual(['on']);
    expect(await query(url, "SELECT current_setting('TimeZone')")).toEqual(['UTC']);
    expect(await query(url, "SELECT current_setting('server_encoding')")).toEqual(['UTF8']);
    await expect(query(url.replace(/:[0-9a-f]{64}@/, ':guess@'), 'SELECT 1')).rejects.toThrow('password');
    await stopped(owner);
    await expect(query(url, 'SELECT 1')).rejects.toThrow('ECONNREFUSED');
  });

  it('starts again with its data, whatever the environment says of other servers', async () => {
    const dataDir = temporaryDir(0o755);
    const first = Owner.start(dataDir);
    await query(await first.url(), 'CREATE TABLE kept AS SELECT 42 AS answer');
    await stopped(first);
    const second = Owner.start(dataDir, {
      env: { PGPORT: '1', PGSSLMODE: 'require', PGOPTIONS: '-c x', LC_ALL: 'nowhere' },
    });
    expect(await query(await second.url(), 'SELECT answer FROM kept')).toEqual([42]);
    await stopped(second);
  });

  it('refuses a second service while one runs, and names the process', async () => {
    const dataDir = temporaryDir(0o755);
    const owner = Owner.start(dataDir);
    const url = await owner.url();
    const { refused } = await Owner.start(dataDir).outcome();
    expect(refused).toBe(`DATA_DIR ${dataDir} is in use by a running service (process ${owner.pid})`);
    expect(await query(url, 'SELECT 1')).toEqual([1]);
    await stopped(owner);
  });

  it('lets exactly one of several simultaneous starts win, in a new and in an old data directory', async () => {
    const dataDir = temporaryDir(0o755);
    for (const _ of ['new', 'old', 'old again']) {
      const owners = [1, 2, 3, 4].map(() => Owner.start(dataDir));
      const outcomes = await Promise.all(owners.map((owner) => owner.outcome()));
      const winner = owners[outcomes.findIndex(({ url }) => url !== undefined)];
      const refusal = `DATA_DIR ${dataDir} is in use by a running service (process ${winner?.pid})`;
      expect(outcomes.filter(({ refused }) => refused === refusal)).toHaveLength(3);
      await Promise.all(owners.map((owner) => owner.kill('SIGTERM')));
    }
  });

  it('leaves a signal to the process group to its owner', async () => {
    const owner = Owner.start(temporaryDir(0o755));
    const url = await owner.url();
    owner.interruptGroup();
    await owner.saw(({ interrupted }) => interrupted === true);
    expect(await query(url, 'SELECT pg_sleep(0.2), 1 AS one')).toContain(1);
    await stopped(owner);
    expect(owner.events.filter(({ log }) => log !== undefined)).toEqual([]);
  });
});

describe('after a kill -9', () => {
  it('of the owner, the next start takes the server over, with what was committed', async () => {
    const dataDir = temporaryDir(0o755);
    const killed = Owner.start(dataDir);
    await query(await killed.url(), 'CREATE TABLE kept AS SELECT 42 AS answer');
    const server = postmasterPid(dataDir);
    await killed.kill('SIGKILL');
    const next = Owner.start(dataDir);
    expect(await query(await next.url(), 'SELECT answer FROM kept')).toEqual([42]);
    expect(postmasterPid(dataDir)).toBe(server);
    await stopped(next);
    expect(existsSync(join(dataDir, 'postgres/postmaster.pid'))).toBe(false);
  });

  it('of the owner, a start with other settings restarts the server', async () => {
    const dataDir = temporaryDir(0o755);
    const killed = Owner.start(dataDir);
    await killed.url();
    await killed.kill('SIGKILL');
    const next = Owner.start(dataDir, { settings: { max_connections: '17' } });
    expect(await query(await next.url(), "SELECT current_setting('max_connections')")).toEqual(['17']);
    await stopped(next);
  });

  it('of the owner and the server, the next start recovers', async () => {
    const dataDir = temporaryDir(0o755);
    const killed = Owner.start(dataDir);
    await query(await killed.url(), 'CREATE TABLE kept AS SELECT 42 AS answer');
    const server = postmasterPid(dataDir);
    await killed.kill('SIGKILL');
    process.kill(server, 'SIGKILL');
    const next = Owner.start(dataDir);
    expect(await query(await next.url(), 'SELECT answer FROM kept')).toEqual([42]);
    await stopped(next);
  });

  it('of the server, it is back on the same port, as often as need be, and still refuses a second service', async () => {
    const dataDir = temporaryDir(0o755);
    const owner = Owner.start(dataDir);
    const url = await owner.url();
    for (const times of [1, 2, 3]) {
      process.kill(postmasterPid(dataDir), 'SIGKILL');
      const isBack = (): boolean => owner.events.filter(({ log }) => log?.includes('is back on port')).length === times;
      await eventually(isBack, 'the server does not come back');
      expect(await query(url, 'SELECT 1')).toEqual([1]);
    }
    const { refused } = await Owner.start(dataDir).outcome();
    expect(refused).toContain(`(process ${owner.pid})`);
    await stopped(owner);
  });

  it('of the server again and again, the owner is told that it is lost', async () => {
    const dataDir = temporaryDir(0o755);
    const owner = Owner.start(dataDir);
    await owner.url();
    const kill = setInterval(() => {
      try {
        process.kill(postmasterPid(dataDir), 'SIGKILL');
      } catch {
        // Not up at this instant.
      }
    }, 20);
    const { failure } = await owner.saw((event) => event.failure !== undefined);
    clearInterval(kill);
    expect(failure).toMatch(/PostgreSQL/);
    await owner.kill('SIGTERM');
  });

  it('of the owner while it makes the cluster, nothing half-made is left', async () => {
    const dataDir = temporaryDir(0o755);
    const isDraft = (name: string): boolean => /^postgres\.new-\d+-[0-9a-f]+$/.test(name);
    const killed = Owner.start(dataDir);
    await eventually(() => {
      const draft = readdirSync(dataDir).find(isDraft);
      return draft !== undefined && existsSync(join(dataDir, draft, 'PG_VERSION'));
    }, 'no cluster is being made');
    await killed.kill('SIGKILL');
    expect(existsSync(join(dataDir, 'postgres'))).toBe(false);
    const next = Owner.start(dataDir);
    expect(await query(await next.url(), 'SELECT 1')).toEqual([1]);
    expect(readdirSync(dataDir).filter((name) => name.startsWith('postgres.new-'))).toEqual([]);
    await stopped(next);
  });

  it('a postmaster.pid whose number belongs to another program by now does not hinder', async () => {
    const dataDir = temporaryDir(0o755);
    const first = Owner.start(dataDir);
    await first.url();
    const lockFile = join(dataDir, 'postgres/postmaster.pid');
    const content = readFileSync(lockFile, 'utf8');
    await stopped(first);
    const { uid, gid } = statSync(join(dataDir, 'postgres'));
    const stranger = spawn('sleep', ['60'], isRoot ? { uid, gid } : {});
    try {
      writeFileSync(lockFile, content.replace(/^\d+/, String(stranger.pid)));
      chownSync(lockFile, uid, gid);
      const next = Owner.start(dataDir);
      expect(await query(await next.url(), 'SELECT 1')).toEqual([1]);
      await stopped(next);
    } finally {
      stranger.kill('SIGKILL');
    }
  });
});

describe('a data directory that is hard to use', () => {
  itAsRoot(`works behind a folder that root alone can pass${asRoot}`, async () => {
    const dataDir = join(temporaryDir(0o700), 'data');
    const first = Owner.start(dataDir);
    await query(await first.url(), 'CREATE TABLE kept AS SELECT 42 AS answer');
    expect(first.events[0]?.log).toMatch(/ the database is kept in \/.*\/decision-ledger-/);
    await stopped(first);
    const second = Owner.start(dataDir);
    expect(await query(await second.url(), 'SELECT answer FROM kept')).toEqual([42]);
    await stopped(second);
  });

  itAsRoot(`works if root alone can enter it${asRoot}`, async () => {
    const dataDir = temporaryDir(0o700);
    const owner = Owner.start(dataDir);
    expect(await query(await owner.url(), 'SELECT 1')).toEqual([1]);
    expect(statSync(dataDir).mode & 0o007).toBe(0);
    await stopped(owner);
  });

  itAsNobody(`works for an ordinary account${asNobody}`, async () => {
    const dataDir = temporaryDir(0o777);
    const owner = Owner.start(dataDir, { uid: NOBODY });
    expect(await query(await owner.url(), 'SELECT 1')).toEqual([1]);
    expect(statSync(join(dataDir, 'postgres')).uid).toBe(NOBODY);
    await stopped(owner);
  });

  itAsOrdinary(`is refused in one line if it cannot be written${asOrdinary}`, async () => {
    const dir = temporaryDir(0o555);
    const { refused, isOneLine } = await Owner.start(join(dir, 'data'), isRoot ? { uid: NOBODY } : {}).outcome();
    chmodSync(dir, 0o755);
    expect(refused).toBe(`DATA_DIR ${dir}/data cannot be used: permission denied`);
    expect(isOneLine).toBe(true);
  });

  it('is refused in one line if a file stands in its place or in the place of the cluster', async () => {
    const dir = temporaryDir(0o755);
    writeFileSync(join(dir, 'file'), '');
    mkdirSync(join(dir, 'data'));
    writeFileSync(join(dir, 'data/postgres'), '');
    for (const place of ['file', 'file/data', 'data']) {
      const { refused, isOneLine } = await Owner.start(join(dir, place)).outcome();
      expect(refused).toMatch(/^DATA_DIR .* cannot be used: .* file/);
      expect(isOneLine).toBe(true);
    }
  });

  it('is refused, not emptied, if the cluster in it is damaged', async () => {
    const dataDir = temporaryDir(0o755);
    const first = Owner.start(dataDir);
    await first.url();
    await stopped(first);
    const control = join(dataDir, 'postgres/global/pg_control');
    renameSync(control, `${control}.away`);
    const { refused } = await Owner.start(dataDir).outcome();
    expect(refused).toContain('is not a whole PostgreSQL cluster');
    expect(existsSync(`${control}.away`)).toBe(true);
  });
});
