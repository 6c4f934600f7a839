import { openCheckpoint, parseVerifierKey, verifyInclusion, type Checkpoint, type VerifierKey } from '#log';
import type { Client, Reply } from './client.js';

/** Asks for a receipt, and waits until there is one unless the headers say otherwise. */
export const inclusion = (
  caller: Client,
  id: string,
  headers: Readonly<Record<string, string>> = { prefer: 'wait=30' },
): Promise<Reply> => caller.get(`/v1/log/proofs/inclusion?ledgerEntryId=${id}`, headers);

const keysOf = new WeakMap<Client, VerifierKey[]>();

/** The checkpoint that a note says, verified by the keys that the log listed when it was first asked. */
export async function opened(caller: Client, note: string): Promise<Checkpoint> {
  let keys = keysOf.get(caller);
  if (keys === undefined) {
    const { text } = await caller.get('/v1/log/key');
    keys = text.trimEnd().split('\n').map(parseVerifierKey);
    keysOf.set(caller, keys);
  }
  return openCheckpoint(note, keys);
}

export async function bytesOf(caller: Client, path: string): Promise<Buffer> {
  const response = await fetch(caller.url + path, { headers: { authorization: `Bearer ${caller.token}` } });
  if (response.status !== 200) throw new Error(`${path}: ${response.status}`);
  return Buffer.from(await response.arrayBuffer());
}

export const bytesFromHex = (hash: string): Buffer => Buffer.from(hash, 'hex');

/** Whether the proof holds for the checkpoint that came with it, and for the leaf that the log itself gives. */
export async function holds(caller: Client, proof: Reply['body']): Promise<boolean> {
  const { size, root } = await opened(caller, proof.checkpoint);
  return (
    size === proof.treeSize &&
    verifyInclusion({
      index: proof.leafIndex,
      size,
      leafHash: bytesFromHex(proof.leafHash),
      hashes: proof.hashes.map(bytesFromHex),
      root,
    })
  );
}
