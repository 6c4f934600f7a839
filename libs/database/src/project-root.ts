import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

function findRoot(from: string): string {
  if (existsSync(join(from, 'package.json')) && existsSync(join(from, 'migrations'))) return from;
  const parent = dirname(from);
  if (parent === from) throw new Error('The project folder (package.json and migrations/) was not found');
  return findRoot(parent);
}

/** The folder that holds `migrations/`: the same whether the code runs from its sources or from `dist/`. */
export const PROJECT_ROOT = findRoot(dirname(fileURLToPath(import.meta.url)));
