import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Checkpoint } from '../pure/checkpoint.js';
import { isEqual } from '../pure/merkle.js';
import type { VerifierKey } from '../pure/note-key.js';
import { ActionRules } from './action-rules.js';
import { Check } from './check.js';
import { exportChecks, ExportComparison } from './compare-export.js';
import { decode, parseKeys, readIfThere } from './files.js';
import { openFor } from './head.js';
import { LogFolder } from './log-folder.js';
import { type Progress, Rebuild, rebuildChecks } from './rebuild.js';

export interface BundleOptions {
  /** Those that are known from elsewhere. Without them the bundle's own are taken, and the check `key` says so. */
  readonly keys: readonly VerifierKey[];
  /** A checkpoint that was kept from earlier, as it was given out. */
  readonly earlier: string | null;
  /** Whether the export was made with filters. */
  readonly isPart: boolean;
  readonly progress: Progress;
}

const headChecks = () => ({
  /** The key is known from elsewhere than from who is being checked. */
  key: new Check('key'),
  /** The checkpoint is signed by that key. */
  checkpoint: new Check('checkpoint'),
  /** The tree that the entries give is the one of the checkpoint. */
  tree: new Check('tree'),
  /** The tree of the checkpoint kept from earlier is the beginning of this one. */
  earlier: new Check('earlier'),
});

/**
 * Checks a whole bundle: a folder with `checkpoint`, `key`, `tile/…`, `decisions.ndjson` and `actions/*.json`, each as the
 * service gave it out. It reads the entries once and the export once, in memory that does not grow with what they say.
 */
export async function verifyBundle(folder: string, options: BundleOptions): Promise<Check[]> {
  const [ofHead, ofTree, ofExport] = [headChecks(), rebuildChecks(), exportChecks()];
  const checks = [ofHead, ofTree, ofExport].flatMap((group): Check[] => Object.values(group));

  const keys = await trustedKeys(folder, options.keys, ofHead.key);
  const note = await readIfThere(join(folder, 'checkpoint'));
  if (note === null) ofHead.checkpoint.notChecked('checkpoint is not there');
  const head = note === null ? null : openFor(ofHead.checkpoint, decode(note), keys);
  if (options.earlier === null) ofHead.earlier.notChecked('No checkpoint from earlier was given');
  const earlier = options.earlier === null ? null : openFor(ofHead.earlier, options.earlier, keys);
  // Without a head that can be believed there is nothing to compare with, and all else is said to be unchecked.
  if (head === null) return checks;

  const log = new LogFolder(folder, head.size);
  const rules = await ActionRules.read(join(folder, 'actions'));
  const rebuild = new Rebuild(log, head.origin, rules, [head.size, earlier?.size ?? 0], ofTree);
  await rebuild.run(options.progress);
  compareRoot(ofHead.tree, rebuild, head, 'the checkpoint');
  if (earlier !== null) compareEarlier(ofHead.earlier, rebuild, head, earlier);

  const path = join(folder, 'decisions.ndjson');
  if (existsSync(path)) await new ExportComparison(log, ofExport).run(path, options.isPart, options.progress);
  else ofExport.export.notChecked('decisions.ndjson is not there');
  return checks;
}

async function trustedKeys(
  folder: string,
  given: readonly VerifierKey[],
  check: Check,
): Promise<readonly VerifierKey[]> {
  if (given.length > 0) {
    check.ok();
    return given;
  }
  check.notChecked('No key was given, so the one in the bundle is taken: whoever made the bundle may have made it too');
  const own = await readIfThere(join(folder, 'key'));
  return own === null ? [] : parseKeys(decode(own));
}

function compareRoot(check: Check, rebuild: Rebuild, { size, root }: Checkpoint, whose: string): void {
  const rebuilt = rebuild.rootAt(size);
  if (rebuilt === null) check.notChecked(`Not all of the first ${size} entries could be read`);
  else
    check.ruledBy(
      isEqual(rebuilt, root)
        ? []
        : [`The root of the first ${size} entries is ${base64(rebuilt)}, that of ${whose} ${base64(root)}`],
    );
}

function compareEarlier(check: Check, rebuild: Rebuild, head: Checkpoint, earlier: Checkpoint): void {
  if (earlier.origin !== head.origin) check.failed(`It is of another log, ${earlier.origin}`);
  else if (earlier.size > head.size)
    check.failed(
      `The log had ${earlier.size} entries, and has ${head.size}: it was cut off or put back, and lacks the entries from ${head.size} on`,
    );
  else compareRoot(check, rebuild, earlier, 'the checkpoint from earlier');
}

function base64(root: Uint8Array): string {
  return Buffer.from(root).toString('base64');
}
