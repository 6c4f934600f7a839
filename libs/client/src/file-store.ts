import { randomBytes } from 'node:crypto';
import { link, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Store } from './store.js';

const SUFFIX = '.json';

/**
 * A store in a folder of a local file system: one file a name, mode 0600, in a folder that is made with mode 0700.
 *
 * A file is written beside its place, synced, and put there by one step that the file system makes atomic (`rename`, or
 * `link` where it must not exist), and the folder is synced; so a reader, and a restart after a loss of power, finds a whole file or
 * none. The file system must know hard links, as ext4, XFS, APFS and NTFS do.
 *
 * @param folder made when it is first needed. It holds requests and outcomes in clear text: treat it as you treat those.
 */
export function fileStore(folder: string): Store {
  let made: Promise<unknown> | null = null;
  const ensureFolder = (): Promise<unknown> =>
    (made ??= mkdir(folder, { recursive: true, mode: 0o700 }).catch((error: unknown) => {
      made = null;
      throw error;
    }));
  const pathOf = (name: string): string => join(folder, name + SUFFIX);

  async function writeBeside(text: string): Promise<string> {
    await ensureFolder();
    const path = join(folder, `.${process.pid}-${randomBytes(8).toString('hex')}.tmp`);
    const file = await open(path, 'wx', 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    return path;
  }

  return {
    async read(name) {
      try {
        return await readFile(pathOf(name), 'utf8');
      } catch (error) {
        if (hasCode(error, 'ENOENT')) return null;
        throw error;
      }
    },
    async create(name, text) {
      const beside = await writeBeside(text);
      try {
        await link(beside, pathOf(name));
      } catch (error) {
        if (hasCode(error, 'EEXIST')) return false;
        throw error;
      } finally {
        await rm(beside, { force: true });
      }
      await syncFolder(folder);
      return true;
    },
    async replace(name, text) {
      await rename(await writeBeside(text), pathOf(name));
      await syncFolder(folder);
    },
    async remove(name) {
      await rm(pathOf(name), { force: true });
    },
    async list(prefix) {
      await ensureFolder();
      const files = await readdir(folder);
      return files
        .filter((file) => file.endsWith(SUFFIX))
        .map((file) => file.slice(0, -SUFFIX.length))
        .filter((name) => name.startsWith(prefix));
    },
  };
}

/** Without it a name, unlike the bytes, can be lost with the power (fsync(2)). Windows opens no folders, and needs it not. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Not by `instanceof`: in a realm of its own, as test runners make, an error of `node:fs` is no `Error`. */
function hasCode(error: unknown, code: string): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === code;
}
