import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';

/** A tree at one moment. */
export interface TreeHead {
  readonly size: number;
  readonly root: Uint8Array;
}

/**
 * What was signed last, kept outside the database, where the restore of a backup does not reach: one small file a tree in
 * `DATA_DIR/log`. It is written after the tree has been committed and before its signature is, so a crash at any moment leaves
 * it at, or behind, what the database has, and what anybody was shown is never ahead of it.
 */
export class Witness {
  private readonly folder: string;

  constructor(dataDir: string) {
    this.folder = join(dataDir, 'log');
  }

  fileOf(tenant: string, logId: string): string {
    return join(this.folder, `${tenant}.${logId}`);
  }

  /** What was signed last by whoever works in this DATA_DIR; null if nothing was. */
  async read(tenant: string, logId: string): Promise<TreeHead | null> {
    const file = this.fileOf(tenant, logId);
    const text = await readFile(file, 'utf8').catch((error: unknown) => {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
      throw error;
    });
    if (text === null) return null;
    const [, size, root] = /^(\d{1,16})\n([A-Za-z0-9+/]{43}=)\n$/.exec(text) ?? [];
    if (size === undefined || root === undefined) throw new Error(`${file} is no record of a tree`);
    return { size: Number(size), root: Buffer.from(root, 'base64') };
  }

  /** On the disk when this returns. Whoever writes holds the tree's row, so there is one at a time. */
  async write(tenant: string, logId: string, { size, root }: TreeHead): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const file = this.fileOf(tenant, logId);
    const draft = `${file}.draft`;
    await synced(draft, 'w', (handle) => handle.writeFile(`${size}\n${Buffer.from(root).toString('base64')}\n`));
    await rename(draft, file);
    // Windows knows no flush of a folder, and needs none.
    if (process.platform !== 'win32') await synced(this.folder, 'r', async () => undefined);
  }
}

async function synced(
  path: string,
  flags: string,
  work: (handle: Awaited<ReturnType<typeof open>>) => Promise<void>,
): Promise<void> {
  const handle = await open(path, flags, 0o600);
  try {
    await work(handle);
    await handle.sync();
  } finally {
    await handle.close();
  }
}
