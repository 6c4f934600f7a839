/**
 * Builds the package: `node build.mjs [--out <folder>]`, `dist` beside this file unless told otherwise.
 *
 *   <out>/esm   ES modules and their types
 *   <out>/cjs   CommonJS and its types
 *
 * `libs/key` is compiled into both, so the package needs nothing of this repository. `canonicalize` is published as an ES
 * module whose exports know no `require`; the CommonJS half therefore carries that very version, compiled, with its licence.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const here = dirname(fileURLToPath(import.meta.url));
const require = createRequire(import.meta.url);
const ts = require('typescript');

const { values } = parseArgs({ options: { out: { type: 'string', default: join(here, 'dist') } } });
const out = resolve(values.out);

const OPTIONS = {
  rootDir: dirname(here),
  target: 'ES2022',
  lib: 'ES2023',
  types: 'node',
  strict: 'true',
  declaration: 'true',
  skipLibCheck: 'true',
};
const FORMATS = {
  esm: { type: 'module', module: 'NodeNext', moduleResolution: 'NodeNext' },
  cjs: { type: 'commonjs', module: 'CommonJS', moduleResolution: 'Bundler' },
};

rmSync(out, { recursive: true, force: true });
for (const [name, { type, module, moduleResolution }] of Object.entries(FORMATS)) {
  const options = Object.entries({ ...OPTIONS, module, moduleResolution, outDir: join(out, name) });
  const compiler = require.resolve('typescript/bin/tsc');
  const source = join(here, 'src/index.ts');
  const settings = options.flatMap(([option, value]) => [`--${option}`, value]);
  // From its own folder, so that the types of Node.js are found; the repository's settings are not the package's.
  execFileSync(process.execPath, [compiler, '--ignoreConfig', ...settings, source], { cwd: here, stdio: 'inherit' });
  writeFileSync(join(out, name, 'package.json'), `${JSON.stringify({ type })}\n`);
}
carryCanonicalize();

function carryCanonicalize() {
  const source = dirname(dirname(fileURLToPath(import.meta.resolve('canonicalize'))));
  const wanted = readJson(join(here, 'package.json')).dependencies.canonicalize;
  const { version } = readJson(join(source, 'package.json'));
  if (version !== wanted) throw new Error(`canonicalize ${version} is installed, package.json pins ${wanted}.`);

  const carried = join(out, 'cjs/canonicalize');
  mkdirSync(carried);
  const text = readFileSync(join(source, 'lib/canonicalize.js'), 'utf8');
  const compilerOptions = { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022 };
  writeFileSync(join(carried, 'index.js'), ts.transpileModule(text, { compilerOptions }).outputText);
  copyFileSync(join(source, 'LICENSE'), join(carried, 'LICENSE'));

  const user = join(out, 'cjs/key/src/canonical.js');
  const before = readFileSync(user, 'utf8');
  const after = before.replace('require("canonicalize")', 'require("../../canonicalize/index.js")');
  if (after === before) throw new Error(`${user} does not require canonicalize as was expected.`);
  writeFileSync(user, after);
}

function readJson(path) {
  return JSON.parse(readFileSync(path, 'utf8'));
}
