import type { Role } from '#access';
import { Documented } from '../http/index.js';

const READERS: readonly Role[] = ['admin', 'auditor', 'orchestrator'];

/** A log of two entries, signed with a key that is published here and good for nothing else. */
const CHECKPOINT =
  'decision-ledger.local/demo\n2\n/F9riP+FVPdbsvnm85wxsZNtRLaSdu33sSBalVuXYeM=\n\n— decision-ledger.local/demo b+PksvN3MK5PmxQqgwmWk/mk6CL6lfIAsSkse76xo3nr+6Pf0bbUKqRbCtbdKFywZwMTV4+OMTESHKUqbVzJQ0eZBQg=\n';
const RECEIPT =
  'c2sp.org/tlog-proof@v1\nindex 1\nG7l9zCFjXUfiZj79/QoXRobZjdcBNS3SzQbotD/T0wU=\n\ndecision-ledger.local/demo\n2\n/F9riP+FVPdbsvnm85wxsZNtRLaSdu33sSBalVuXYeM=\n\n— decision-ledger.local/demo b+PksvN3MK5PmxQqgwmWk/mk6CL6lfIAsSkse76xo3nr+6Pf0bbUKqRbCtbdKFywZwMTV4+OMTESHKUqbVzJQ0eZBQg=\n';
const HASHES = [
  '1bb97dcc21635d47e2663efdfd0a174686d98dd701352dd2cd06e8b43fd3d305',
  'cb5a3ce862c3e321f3f7df6d2690549e936a8e377135aae9f3d69f691f547d5b',
] as const;
const KEYS =
  'decision-ledger.local/demo+6fe3e4b2+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs\ndecision-ledger.local/demo+8fd4dc14+AYqHX/8es4RRV3rNWv7kBUVlaN18ieCQhjoFV7x69J8X\n';

const validation = (pointer: string, detail: string) =>
  ({ code: 'validation-failed', detail: `${pointer}: ${detail}`, members: { errors: [{ pointer, detail }] } }) as const;

const UNSIGNED = {
  code: 'unavailable',
  detail: 'No worker has signed the log of this tenant yet. Is one running?',
} as const;

export const GetCheckpointDoc = (): MethodDecorator =>
  Documented({
    id: 'getCheckpoint',
    summary: 'The state of the log, signed',
    description:
      'A signed note in the form of C2SP tlog-checkpoint: which log, how many entries it has, and one hash over all of them in their order. **Keep it.** Whoever has a checkpoint can find out years later, without trusting anybody here, whether an entry that it covered was altered, removed, or had another put before it. There is one for the empty log too.',
    roles: READERS,
    answers: [{ status: 200, description: 'The last checkpoint.', example: CHECKPOINT, type: 'text/plain' }],
    problems: [UNSIGNED],
  });

export const GetTileDoc = (): MethodDecorator =>
  Documented({
    id: 'getTile',
    summary: 'A piece of the tree, or the entries themselves',
    description:
      'The log as files, laid out as C2SP tlog-tiles says: `{L}/{N}` holds 256 hashes of level L, `entries/{N}` the leaves that they are of, and `.p/{W}` the first W of a piece that is not full yet. A piece that was once served never changes, so it may be cached for good. With the tiles and a checkpoint anybody can rebuild the tree.',
    roles: READERS,
    params: [
      { name: 'path', description: '{L}/{N} or entries/{N}, with .p/{W} for a partial one.', example: '0/000.p/2' },
    ],
    answers: [
      {
        status: 200,
        description: 'The bytes.',
        example: '…',
        type: 'application/octet-stream',
        headers: { 'Cache-Control': 'private, max-age=31536000, immutable' },
      },
    ],
    problems: [
      validation('path', 'is not the path of a tile'),
      { code: 'not-found', detail: 'The log has no such tile, or not as wide a one yet.' },
    ],
  });

export const ProveInclusionDoc = (): MethodDecorator =>
  Documented({
    id: 'proveInclusion',
    takesQuery: true,
    summary: 'A receipt: this entry is in the log',
    description:
      'Proves that the entry is in the log, at which place, against the checkpoint in the same answer. With `Accept: text/plain` it is a receipt in the form of C2SP tlog-proof: one file, complete in itself, that can be verified without this service and after its end. An entry is sealed within seconds of its decision; `Prefer: wait=N` waits for it.',
    roles: READERS,
    headers: [
      { name: 'Prefer', description: 'Seconds to wait for the entry to be sealed, at most 30.', example: 'wait=5' },
    ],
    answers: [
      {
        status: 200,
        description: 'The proof. Hashes are in hex, the lowest first; with `Accept: text/plain` the receipt.',
        example: { leafIndex: 1, treeSize: 2, leafHash: HASHES[1], hashes: [HASHES[0]], checkpoint: CHECKPOINT },
        asText: RECEIPT,
      },
    ],
    problems: [
      validation('ledgerEntryId', 'must be a UUID in lower case'),
      { code: 'not-found', detail: 'There is no such ledger entry.' },
      { code: 'not-sealed', detail: 'The entry is recorded, and no checkpoint covers it yet.' },
    ],
  });

export const ProveConsistencyDoc = (): MethodDecorator =>
  Documented({
    id: 'proveConsistency',
    takesQuery: true,
    summary: 'Proof that the log only grew',
    description:
      'Proves that the log of `first` entries is the beginning of the log of `second`: with the two checkpoints, that nothing which the older one covers was altered. Two equal sizes need no hashes.',
    roles: READERS,
    answers: [
      {
        status: 200,
        description: 'The proof. Hashes are in hex.',
        example: { first: 1, second: 2, hashes: [HASHES[1]] },
      },
    ],
    problems: [validation('second', 'is beyond the checkpoint, which is of 2 entries'), UNSIGNED],
  });

export const GetKeysDoc = (): MethodDecorator =>
  Documented({
    id: 'getLogKeys',
    summary: 'The keys that verify checkpoints',
    description:
      'One verifier key a line, in the form of C2SP signed-note: the one that signs now first, retired ones after it, for the checkpoints that were signed with them. Get them once by a way that you trust, and keep them: a key that comes with what it verifies proves nothing.',
    roles: READERS,
    answers: [{ status: 200, description: 'The keys.', example: KEYS, type: 'text/plain' }],
    problems: [UNSIGNED],
  });
