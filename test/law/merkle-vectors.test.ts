import { expect, test } from '@jest/globals';
import { verifyConsistency, verifyInclusion } from '#log';
import { describeVectors, vectorBytes, vectorFiles } from './vectors.js';

interface Vector {
  readonly leafIdx: number;
  readonly treeSize: number;
  readonly leafHash: string | null;
  readonly root: string | null;
  readonly size1: number;
  readonly size2: number;
  readonly root1: string | null;
  readonly root2: string | null;
  readonly proof: readonly string[] | null;
  readonly wantErr: boolean;
}

/** Good by the library that the vectors come from, which takes roots of any length; here a root has 32 bytes. */
const SHORT_ROOTS = 'merkle/consistency/additional/sizes-are-equal-one-and-proof-is-empty.json';

/** What that library refuses as a matter of policy, and this one too. */
const POLICY = [
  'merkle/consistency/additional/consistency-check-on-empty-tree-size1-is-zero-is-useless.json',
  'merkle/consistency/additional/size1-is-zero-and-size2-is-not-zero.json',
  'merkle/consistency/additional/sizes-are-equal-zero-and-proof-is-empty.json',
];

function vectorsIn(folder: string): [file: string, vector: Vector][] {
  return vectorFiles(folder).flatMap((name): [string, Vector][] =>
    name.endsWith('.json')
      ? // Sizes beyond 2^53 come out inexact, which is no matter: no tree is so large, and all of these are wrong.
        [[`${folder}/${name}`, JSON.parse(vectorBytes(folder, name).toString('utf8'))]]
      : vectorsIn(`${folder}/${name}`),
  );
}

const bytes = (base64: string | null | undefined): Buffer => Buffer.from(base64 ?? '', 'base64');
const hashesOf = ({ proof }: Vector): Buffer[] => (proof ?? []).map(bytes);

describeVectors('the published proofs of RFC 6962', () => {
  test('are all there', () => {
    expect(vectorsIn('merkle/inclusion').length + vectorsIn('merkle/consistency').length).toBe(196);
    const files = vectorsIn('merkle/consistency').map(([file]) => file);
    for (const file of [...POLICY, SHORT_ROOTS]) expect(files).toContain(file);
  });

  test.each(vectorsIn('merkle/inclusion'))('%s', (_file, vector) => {
    const { leafIdx: index, treeSize: size, leafHash, root, wantErr } = vector;
    const inclusion = { index, size, leafHash: bytes(leafHash), root: bytes(root), hashes: hashesOf(vector) };
    expect(verifyInclusion(inclusion)).toBe(!wantErr);
  });

  test.each(vectorsIn('merkle/consistency'))('%s', (file, vector) => {
    const { size1: first, size2: second, root1, root2, wantErr } = vector;
    const consistency = {
      first,
      second,
      firstRoot: bytes(root1),
      secondRoot: bytes(root2),
      hashes: hashesOf(vector),
    };
    expect(verifyConsistency(consistency)).toBe(!wantErr && file !== SHORT_ROOTS);
  });
});
