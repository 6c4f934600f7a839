import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { builtinModules } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { deriveContentKey } from '#key';
import { BUILD_TIMEOUT_MS, CLIENT, installClient, type Project } from './installed.js';
import { fakeLedger, type Ledger } from './ledgers.js';
import { freshInputs } from './support.js';

const run = promisify(execFile);

let ledger: Ledger;
let project: Project;
beforeAll(async () => {
  [ledger, project] = await Promise.all([fakeLedger(), installClient()]);
}, BUILD_TIMEOUT_MS);
afterAll(async () => {
  await ledger?.stop();
  await project?.remove();
});

const PROGRAM = `
const settings = JSON.parse(process.env.SETTINGS);
const ledger = createClient({ ...settings, store: memoryStore() });
const inputs = JSON.parse(process.env.INPUTS);
const main = async () => {
  const first = await ledger.decide(inputs, async ({ key }) => ({ key }));
  const again = await ledger.decide(inputs, async () => 'never');
  const error = await ledger
    .decide({ ...inputs, policyVersion: 'other' }, () => { throw new Refusal('no'); })
    .catch((refused) => refused);
  console.log(JSON.stringify({ first, again, refused: error instanceof Refused && error instanceof LedgerError }));
};
main();
`;
const NAMES = '{ createClient, LedgerError, memoryStore, Refusal, Refused }';
const PROGRAMS: readonly (readonly [string, string, string])[] = [
  ['an ES module', 'program.mjs', `import ${NAMES} from '@decision-ledger/client';${PROGRAM}`],
  ['CommonJS', 'program.cjs', `const ${NAMES} = require('@decision-ledger/client');${PROGRAM}`],
];

describe('the built package', () => {
  test.each(PROGRAMS)('works from %s, and warns of nothing', async (_name, file, text) => {
    await project.write(file, text);
    const inputs = freshInputs('refund.create', { params: { ünï: [1e21, -0, 1e-7], '': { b: 1, a: null } } });
    const { url, token, tenant } = ledger;
    const env = { SETTINGS: JSON.stringify({ url, token, tenant }), INPUTS: JSON.stringify(inputs) };
    const { stdout, stderr } = await project.node(file, env);
    const { first, again, refused } = JSON.parse(stdout);
    const { key } = deriveContentKey({ ...inputs, tenantId: tenant });
    expect(first).toMatchObject({ key, outcome: { result: { key } }, replayed: false });
    expect(again).toEqual({ ...first, replayed: true });
    expect([refused, stderr]).toEqual([true, '']);
  });

  test('understands a verdict of its other half', async () => {
    const text = `
      import { createRequire } from 'node:module';
      import { createClient, memoryStore } from '@decision-ledger/client';
      const { Refusal } = createRequire(import.meta.url)('@decision-ledger/client');
      const ledger = createClient({ ...JSON.parse(process.env.SETTINGS), store: memoryStore() });
      const run = () => { throw new Refusal('mixed'); };
      await ledger.decide(JSON.parse(process.env.INPUTS), run).catch((error) => console.log(error.name, error.reason));
    `;
    await project.write('mixed.mjs', text);
    const { url, token, tenant } = ledger;
    const env = {
      SETTINGS: JSON.stringify({ url, token, tenant }),
      INPUTS: JSON.stringify(freshInputs('refund.create')),
    };
    expect((await project.node('mixed.mjs', env)).stdout.trim()).toBe('Refused mixed');
  });

  test('has types for both, which hold under the strictest settings', async () => {
    const body = `
      const client: Client = createClient({ url: '', token: async () => '', tenant: 'acme', store: memoryStore() });
      export async function amountOf(inputs: DecisionInputs): Promise<number> {
        const { outcome } = await client.decide(inputs, async ({ lease }) => ({ amount: lease.number }));
        return outcome.result.amount;
      }
    `;
    const head = `import { type Client, createClient, type DecisionInputs, memoryStore } from '@decision-ledger/client';`;
    for (const file of ['typed.mts', 'typed.cts']) await project.write(file, head + body);
    await project.compile('typed.mts', 'typed.cts');
  });

  test('imports Node.js, canonicalize and itself, and nothing else', async () => {
    const dist = join(project.folder, 'node_modules/@decision-ledger/client/dist');
    const files = (await readdir(dist, { recursive: true })).filter((file) => /\.(js|d\.ts)$/.test(file));
    const imported = new Set<string>();
    for (const file of files) {
      const text = await readFile(join(dist, file), 'utf8');
      for (const [, name = ''] of text.matchAll(/(?:\bfrom |\bimport |require\(|import\()['"]([^'"]+)['"]/g))
        imported.add(name);
    }
    const foreign = [...imported].filter(
      (name) => !name.startsWith('.') && !builtinModules.includes(name.replace('node:', '')),
    );
    expect(foreign).toEqual(['canonicalize']);
    const { dependencies } = JSON.parse(await readFile(join(CLIENT, 'package.json'), 'utf8'));
    expect(dependencies).toEqual({ canonicalize: expect.stringMatching(/^\d+\.\d+\.\d+$/) });
  });

  test('is packed with its README, its types and the licence of what it carries, without sources and tests', async () => {
    const cache = await mkdtemp(join(tmpdir(), 'npm-cache-'));
    const packed = join(project.folder, 'node_modules/@decision-ledger/client');
    await run('cp', [join(CLIENT, 'README.md'), packed]);
    const command = ['pack', '--dry-run', '--json', '--ignore-scripts', '--offline', '--cache', cache];
    const { stdout } = await run('npm', command, { cwd: packed });
    await rm(cache, { recursive: true, force: true });
    const [{ name, files }] = JSON.parse(stdout);
    const paths: string[] = files.map(({ path }: { path: string }) => path);
    expect(name).toBe('@decision-ledger/client');
    expect(paths).toEqual(
      expect.arrayContaining([
        'README.md',
        'package.json',
        'dist/cjs/canonicalize/LICENSE',
        'dist/cjs/client/src/index.d.ts',
        'dist/cjs/client/src/index.js',
        'dist/esm/client/src/index.d.ts',
        'dist/esm/client/src/index.js',
      ]),
    );
    expect(paths.filter((path) => !path.startsWith('dist/')).sort()).toEqual(['README.md', 'package.json']);
    expect(paths.filter((path) => /(?<!\.d)\.ts$|test/.test(path))).toEqual([]);
  });
});
