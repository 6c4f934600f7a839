import { createHash } from 'node:crypto';
import type { JsonObject, JsonValue } from '#key';
import { type Leaf, readLeaf } from '../pure/leaf.js';
import { LogError } from '../pure/log-error.js';
import { TILE_WIDTH } from '../pure/tile.js';
import { Check } from './check.js';
import { compareRow } from './exported-row.js';
import { isObject, linesOf, parseObject } from './files.js';
import type { LogFolder } from './log-folder.js';
import { entryName, type Progress } from './rebuild.js';

export type ExportChecks = ReturnType<typeof exportChecks>;

export const exportChecks = () => ({
  /** The export came whole: its trailer counts and hashes it. */
  export: new Check('export', 'export'),
  /** Each row says what the log says, and each entry of the log has a row. */
  rows: new Check('rows', 'rows'),
  /** The inputs and the note are the ones of the content key and the fingerprint. */
  identities: new Check('identities', 'content keys and fingerprints'),
  /** The payloads are the ones of the digests. */
  digests: new Check('digests', 'payloads'),
});

/** Compares the rows of an export with the log, in the order in which they come and one at a time. */
export class ExportComparison {
  /** One bit for each entry of the log: whether a row has come for it. */
  private readonly seen: Uint8Array;
  private rowCount = 0;

  constructor(
    private readonly log: LogFolder,
    private readonly checks: ExportChecks,
  ) {
    this.seen = new Uint8Array(Math.ceil(log.size / 8));
  }

  /** @param isPart the export was made with filters: entries without a row are no fault, but not compared either */
  async run(path: string, isPart: boolean, progress: Progress): Promise<void> {
    const before = createHash('sha256');
    let trailer: JsonValue | undefined;
    for await (const line of linesOf(path)) {
      const row = this.parse(line);
      if (trailer !== undefined) this.checks.export.failed('Lines come after the trailer');
      trailer = row?.['trailer'];
      if (trailer !== undefined) continue;
      before.update(line);
      this.rowCount++;
      if (row !== null) await this.compare(row);
      progress(this.rowCount, Math.max(this.rowCount, this.log.size), 'rows');
    }
    this.checkTrailer(trailer, before.digest('hex'));
    await this.nameTheUnseen(isPart);
  }

  private parse(line: Buffer): JsonObject | null {
    try {
      return parseObject(line);
    } catch (error) {
      if (!(error instanceof LogError)) throw error;
      this.checks.rows.failed(`row ${this.rowCount}: ${error.message}`);
      return null;
    }
  }

  private async compare(row: JsonObject): Promise<void> {
    const { leafIndex, decisionId, ledgerEntryId } = row;
    const where = `row ${this.rowCount - 1} (decision ${JSON.stringify(decisionId)})`;
    // A decision that has no outcome yet has no ledger entry either.
    if (ledgerEntryId === null && (leafIndex ?? null) === null) return;
    if (typeof leafIndex !== 'number' || leafIndex >= this.log.size) {
      this.checks.rows.notChecked(`${where} is not under the checkpoint`);
      return;
    }
    const isFirst = this.see(leafIndex);
    if (isFirst === null) this.checks.rows.failed(`${where} has the index ${leafIndex}`);
    else if (!isFirst) this.checks.rows.failed(`${where} is not the first row for entry ${leafIndex}`);
    else {
      const leaf = await this.leafAt(leafIndex);
      if (leaf === null) this.checks.rows.notChecked(`${where}: entry ${leafIndex} cannot be read`);
      else compareRow(row, leaf, `${where}, ${entryName(leafIndex, leaf)}`, this.checks);
    }
  }

  private checkTrailer(trailer: JsonValue | undefined, sha256: string): void {
    if (!isObject(trailer)) {
      this.checks.export.notChecked('The export ends without its trailer: it was cut off');
      return;
    }
    if (trailer['nextCursor'] !== null) this.checks.export.notChecked('The export says that more rows follow');
    this.checks.export.ruledBy([
      ...(trailer['rows'] === this.rowCount
        ? []
        : [`there are ${this.rowCount} rows, not ${JSON.stringify(trailer['rows'])}`]),
      ...(trailer['sha256'] === sha256 ? [] : ['the rows have another hash than the trailer says']),
    ]);
  }

  private async nameTheUnseen(isPart: boolean): Promise<void> {
    for (let index = 0; index < this.log.size; index++) {
      if (this.isSeen(index)) continue;
      const what = `${entryName(index, await this.leafAt(index))} is in the log, but not in the export`;
      if (isPart) this.checks.rows.notChecked(what);
      else this.checks.rows.failed(what);
    }
  }

  /** The leaf at an index, or null if it cannot be read: why not has been said when the tree was built. */
  private async leafAt(index: number): Promise<Leaf | null> {
    try {
      const entry = (await this.log.entries(Math.floor(index / TILE_WIDTH)))?.[index % TILE_WIDTH];
      return entry ? readLeaf(entry) : null;
    } catch (error) {
      if (error instanceof LogError) return null;
      throw error;
    }
  }

  private isSeen(index: number): boolean {
    return ((this.seen[index >> 3] ?? 0) & (1 << (index & 7))) !== 0;
  }

  /** Whether this is the first time, or null if no entry can have this index. */
  private see(index: number): boolean | null {
    if (!Number.isSafeInteger(index) || index < 0) return null;
    if (this.isSeen(index)) return false;
    this.seen[index >> 3] = (this.seen[index >> 3] ?? 0) | (1 << (index & 7));
    return true;
  }
}
