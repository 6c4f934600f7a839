import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

export const CLIENT = fileURLToPath(new URL('../../libs/client/', import.meta.url));
export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The build compiles the package twice; on a busy machine that takes its time. */
export const BUILD_TIMEOUT_MS = 180_000;

/** A project of its own, in which the built package is installed and nothing of this repository can be reached. */
export interface Project {
  readonly folder: string;
  write(file: string, text: string): Promise<void>;
  /** Runs a program of the project. */
  node(file: string, env?: Readonly<Record<string, string>>): Promise<{ stdout: string; stderr: string }>;
  /** Compiles TypeScript beside itself, as strictly as it gets. */
  compile(...files: readonly string[]): Promise<void>;
  remove(): Promise<void>;
}

export async function installClient(): Promise<Project> {
  const folder = await mkdtemp(join(tmpdir(), 'ledger-client-'));
  const modules = join(folder, 'node_modules');
  const installed = join(modules, '@decision-ledger/client');
  await mkdir(installed, { recursive: true });
  await run(process.execPath, [join(CLIENT, 'build.mjs'), '--out', join(installed, 'dist')]);
  await cp(join(CLIENT, 'package.json'), join(installed, 'package.json'));
  await cp(join(ROOT, 'node_modules/canonicalize'), join(modules, 'canonicalize'), {
    recursive: true,
    dereference: true,
  });
  for (const types of ['@types', 'undici-types'])
    await symlink(join(ROOT, 'node_modules', types), join(modules, types));
  const project: Project = {
    folder,
    write: (file, text) => writeFile(join(folder, file), text),
    node: (file, env = {}) =>
      run(process.execPath, [join(folder, file)], { cwd: folder, env: { PATH: process.env['PATH'], ...env } }),
    async compile(...files) {
      const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
      const settings = ['--ignoreConfig', '--strict', '--module', 'NodeNext', '--target', 'ES2022', '--types', 'node'];
      const stricter = ['--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess', '--skipLibCheck', 'false'];
      const command = [compiler, ...settings, ...stricter, ...files];
      await run(process.execPath, command, { cwd: folder }).catch((error: { stdout?: string }) => {
        throw new Error(`It does not compile: ${error.stdout}`);
      });
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
  await project.write('package.json', '{ "type": "module" }');
  return project;
}
