import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import ts from 'typescript';
import { PROJECT_ROOT } from '#database';

/** A file of the project, by its path from the root with forward slashes. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

/** Made by tools or by a run: none of it is written by hand or committed. */
const NOT_OURS = new Set(['node_modules', 'dist', 'coverage', '.git', '.data']);

/** The text files of the project in these folders, or in all of it. */
export function filesOf(
  folders: readonly string[] = ['.'],
  ends = /\.(ts|mjs|sql|md|json|ya?ml|sh)$|Dockerfile$|^\.[a-z]+rc$/,
): SourceFile[] {
  const found: SourceFile[] = [];
  const walk = (folder: string): void => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory() && !NOT_OURS.has(entry.name) && !entry.name.startsWith('dist.')) walk(path);
      if (entry.isFile() && ends.test(entry.name))
        found.push({ path: relative(PROJECT_ROOT, path).split(sep).join('/'), text: readFileSync(path, 'utf8') });
    }
  };
  for (const folder of folders) walk(join(PROJECT_ROOT, folder));
  return found.toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

/** The TypeScript of the product: what is served, not what tests it. */
export const productFiles = (): SourceFile[] => filesOf(['apps', 'libs', 'examples'], /\.ts$/);

/** Every node of a file's syntax tree. */
export function nodesOf({ path, text }: SourceFile): ts.Node[] {
  const nodes: ts.Node[] = [];
  const visit = (node: ts.Node): void => {
    nodes.push(node);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(path, text, ts.ScriptTarget.ES2023, true));
  return nodes;
}

interface Import {
  readonly from: string;
  readonly isExport: boolean;
  readonly isStar: boolean;
}

/** What a file imports or exports from, type-only or not. */
export function importsOf(file: SourceFile): Import[] {
  return nodesOf(file).flatMap((node): Import[] => {
    if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier))
      return [{ from: node.moduleSpecifier.text, isExport: false, isStar: false }];
    if (ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined && ts.isStringLiteral(node.moduleSpecifier))
      return [{ from: node.moduleSpecifier.text, isExport: true, isStar: node.exportClause === undefined }];
    return [];
  });
}

/** `apps/api` of `apps/api/src/x.ts`. */
export const partOf = (path: string): string => path.split('/').slice(0, 2).join('/');

export function lineOf(node: ts.Node): number {
  return node.getSourceFile().getLineAndCharacterOfPosition(node.getStart()).line + 1;
}
