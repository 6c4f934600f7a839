import { cpSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JsonObject } from '#key';
import { formatVerifierKey, runVerifier } from '#log';
import { exportOf, TestBundle } from './log-bundle.js';
import { testSigner } from './log.js';

/** Two full tiles and a partial one. */
export const SIZE = 700;
export const KEY = formatVerifierKey(testSigner(1));

const ALL = ['key', 'checkpoint', 'tree', 'earlier', 'entries', 'tiles', 'keys', 'places'].concat(
  ...['export', 'rows', 'identities', 'digests'],
);

/** The names of all checks of a bundle, each with this status. */
export const all = (status: string): Record<string, string> => Object.fromEntries(ALL.map((name) => [name, status]));

export interface Result {
  readonly code: number;
  readonly verdict: string;
  readonly status: Readonly<Record<string, string>>;
  readonly findings: string;
}

/** The verifier's answer in JSON, in parts that tests ask about. */
export async function runForJson(...args: string[]): Promise<Result> {
  const written: string[] = [];
  const code = await runVerifier([...args, '--json'], { out: (text) => written.push(text), err: () => undefined });
  const { verdict, checks } = JSON.parse(written.join(''));
  const status = Object.fromEntries(
    checks.map((check: { name: string; status: string }) => [check.name, check.status]),
  );
  return { code, verdict, status, findings: JSON.stringify(checks) };
}

/** A sound bundle of {@link SIZE} entries with a checkpoint from earlier, and copies of it to tamper with. */
export class Workshop {
  readonly folder = mkdtempSync(join(tmpdir(), 'decision-ledger-verify-'));
  private readonly bundle = TestBundle.of(SIZE);
  readonly whole = this.bundle.write(join(this.folder, 'whole'));
  readonly earlier = join(this.folder, 'earlier');
  private copies = 0;

  constructor() {
    writeFileSync(this.earlier, TestBundle.of(300).log.checkpoint());
  }

  async verify(bundle: string, ...options: string[]): Promise<Result> {
    return runForJson('bundle', bundle, '--key', KEY, '--earlier', this.earlier, ...options);
  }

  copy(): string {
    const place = join(this.folder, `copy-${this.copies++}`);
    cpSync(this.whole, place, { recursive: true });
    return place;
  }

  /** A copy with its rows changed, the trailer made anew. */
  withRows(change: (rows: JsonObject[]) => void): string {
    const rows = structuredClone(this.bundle.rows);
    change(rows);
    const place = this.copy();
    writeFileSync(join(place, 'decisions.ndjson'), exportOf(rows));
    return place;
  }
}
