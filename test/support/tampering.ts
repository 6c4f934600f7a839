import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PROJECT_ROOT } from '#database';
import { readCheckpoint } from '#log';
import type { TestDatabase } from './database.js';
import { clientsOf, inputs, startService, type Client } from './index.js';
import { claim } from './leases.js';
import { inclusion } from './log-client.js';
import { gatherBundle } from './log-gather.js';
import { setStage, TRANSACTIONAL, until, type Stage } from './stage.js';

const ACTIONS = {
  'note.add': TRANSACTIONAL,
  'case.close': { ...TRANSACTIONAL, uniqueness: 'subject' },
  'report.file': { ...TRANSACTIONAL, uniqueness: 'subject-and-period' },
  'call.out': { execution: 'caller', leaseSeconds: 3600 },
};

/** How many entries there are when the backup is made, and at the end: a full tile and more. */
const FIRST = 40;
const INLINE = 290;
const CALLS = 16;
export const SIZE = INLINE + CALLS;

/** A line of the export. */
export interface Row {
  readonly [member: string]: any; // eslint-disable-line -- a test looks into rows of every shape
  readonly ledgerEntryId: string;
  readonly decisionId: string;
  readonly leafIndex: number;
}

/** As the verifier calls an entry. */
export const nameOf = ({ leafIndex, ledgerEntryId }: Row): string => `entry ${leafIndex} (${ledgerEntryId})`;

interface Finding {
  readonly check: string;
  readonly status: string;
  readonly what: string;
}

/** What the verifier program said. */
export interface Verified {
  readonly code: number;
  readonly status: Readonly<Record<string, string>>;
  readonly findings: readonly Finding[];
}

/** Runs the program in a process of its own. */
async function runProgram(...args: readonly string[]): Promise<Verified> {
  const { code, stdout } = await new Promise<{ code: number; stdout: string }>((resolve) => {
    const child = execFile(
      process.execPath,
      [join(PROJECT_ROOT, 'scripts/verify.mjs'), ...args, '--json'],
      (_error, stdout) => resolve({ code: child.exitCode ?? -1, stdout }),
    );
  });
  const checks: { name: string; status: string; findings: Omit<Finding, 'check'>[] }[] = JSON.parse(stdout).checks;
  return {
    code,
    status: Object.fromEntries(checks.map(({ name, status }) => [name, status])),
    findings: checks.flatMap(({ name, findings }) => findings.map((finding) => ({ check: name, ...finding }))),
  };
}

/** Whether a check failed and names what is wrong. */
export const isNamed = ({ findings }: Verified, check: string, name: string): boolean =>
  findings.some((finding) => finding.check === check && finding.status === 'failed' && finding.what.includes(name));

/** A log that was sealed, and what an auditor keeps of it where the operator cannot write. */
export class Original {
  private readonly copies: Copy[] = [];
  /** Those that no tampering of the current test has taken yet. */
  private free: Row[] = [];

  private constructor(
    private readonly stage: Stage,
    readonly folder: string,
    /** The database at its 40th entry. */
    readonly backup: TestDatabase,
    /** In the order of the log. */
    readonly rows: readonly Row[],
    readonly signingKey: string,
  ) {}

  static async make(): Promise<Original> {
    const folder = mkdtempSync(join(tmpdir(), 'decision-ledger-tampering-'));
    const signingKey = randomBytes(32).toString('base64');
    const stage = await setStage({ env: { WORKER: 'off' }, actions: ACTIONS });
    const keep = async (path: string, file: string): Promise<void> =>
      writeFileSync(join(folder, file), (await stage.auditor.get(path, { accept: 'text/plain' })).text);
    const seal = async (last: string): Promise<void> => {
      const worker = await stage.addService({ WORKER: 'on', ...environment(folder, signingKey) });
      await inclusion(stage.auditor, last);
      await worker.stop();
    };
    await seal(await decide(stage.orchestrator, 0, FIRST));
    await keep('/v1/log/checkpoint', 'early');
    const backup = await stage.database.copy();
    await decide(stage.orchestrator, FIRST, INLINE);
    await seal(await call(stage.orchestrator));
    await keep('/v1/log/checkpoint', 'late');
    await keep('/v1/log/key', 'key');
    const rows = await rowsOf(stage.auditor);
    for (const { ledgerEntryId: id, externalRef } of rows)
      if (externalRef !== null) await keep(`/v1/log/proofs/inclusion?ledgerEntryId=${id}`, `receipt.${id}`);
    await stage.database.query(`SELECT copy_recorded('{acme}', 10000)`);
    await stage.service.stop();
    return new Original(stage, folder, backup, rows, signingKey);
  }

  /** An entry that no other tampering of this copy touches. */
  take(isWanted: (row: Row) => boolean = () => true): Row {
    const at = this.free.findIndex(isWanted);
    const [row] = at < 0 ? [] : this.free.splice(at, 1);
    if (row === undefined) throw new Error('No such entry is left');
    return row;
  }

  row(index: number): Row {
    const row = this.rows[index];
    if (row === undefined) throw new Error(`There is no entry ${index}`);
    return row;
  }

  /** What the verifier is told of the key and the checkpoint that were kept. */
  kept(earlier: 'early' | 'late'): string[] {
    return ['--key', join(this.folder, 'key'), '--earlier', join(this.folder, earlier)];
  }

  /** The file of a receipt that was kept. */
  receipt({ ledgerEntryId }: Row): string {
    return join(this.folder, `receipt.${ledgerEntryId}`);
  }

  /** A copy to tamper with, by a superuser whom no constraint holds. */
  async copy(from: 'now' | 'backup' = 'now'): Promise<Copy> {
    const database = await (from === 'now' ? this.stage.database : this.backup).copy();
    await database.query(WITHOUT_CONSTRAINTS);
    this.free = [...this.rows];
    const copy = new Copy(this, database, this.stage.tokens);
    this.copies.push(copy);
    return copy;
  }

  async clearCopies(): Promise<void> {
    await Promise.all(this.copies.splice(0).map((copy) => copy.clear()));
  }

  async clear(): Promise<void> {
    await this.clearCopies();
    await this.backup.drop();
    await this.stage.clear();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A copy of the database, and a service on it as soon as it has been tampered with. */
export class Copy {
  readonly folder: string;
  private service: { readonly url: string; stop(): Promise<unknown> } | null = null;

  constructor(
    private readonly original: Original,
    readonly database: TestDatabase,
    private readonly tokens: Stage['tokens'],
  ) {
    this.folder = mkdtempSync(join(original.folder, 'copy-'));
  }

  /** @param signs whether a worker with the real key seals what there is, on a machine that has signed nothing yet */
  async serve(
    signs: 'with the real key' | 'not at all' = 'not at all',
  ): Promise<Record<'auditor' | 'orchestrator', Client>> {
    this.service ??= await startService({
      DATABASE_URL: this.database.url,
      DATABASE_POOL_SIZE: '5',
      ...(signs === 'not at all' ? { WORKER: 'off' } : {}),
      ...environment(this.folder, this.original.signingKey),
    });
    return clientsOf(this.service.url, this.tokens);
  }

  /**
   * Gathers a bundle over HTTP and runs the verifier on it, with a checkpoint kept from earlier.
   *
   * @param add puts more into the bundle's folder than was gathered
   */
  async verify(earlier: 'early' | 'late' = 'late', add?: (bundle: string) => Promise<void>): Promise<Verified> {
    const bundle = mkdtempSync(join(this.folder, 'bundle-'));
    await gatherBundle((await this.serve()).auditor, bundle, Object.keys(ACTIONS));
    await add?.(bundle);
    return runProgram('bundle', bundle, ...this.original.kept(earlier));
  }

  /** Compares an entry, as the service shows it now, with a receipt. */
  async verifyReceipt(receipt: string, { ledgerEntryId }: Row): Promise<Verified> {
    const { auditor } = await this.serve();
    const entry = join(this.folder, 'entry.json');
    writeFileSync(entry, (await auditor.get(`/v1/ledger/entries/${ledgerEntryId}`)).text);
    return runProgram('receipt', receipt, '--key', join(this.original.folder, 'key'), '--entry', entry);
  }

  /** Waits until a checkpoint covers so many entries. */
  async signed(size: number): Promise<void> {
    const { auditor } = await this.serve();
    const now = async (): Promise<number> => readCheckpoint((await auditor.get('/v1/log/checkpoint')).text).size;
    if ((await until(now, (found) => found === size, 20_000)) !== size) throw new Error(`Never ${size} entries`);
  }

  async clear(): Promise<void> {
    await this.service?.stop();
    await this.database.drop();
  }
}

/** Of a service: a DATA_DIR of its own, so that it remembers nothing of what another one signed. */
const environment = (folder: string, signingKey: string): Record<string, string> => ({
  DATA_DIR: mkdtempSync(join(folder, 'data-')),
  LOG_SIGNING_KEY: signingKey,
  SEAL_INTERVAL_MS: '20',
});

const WITHOUT_CONSTRAINTS = `DO $$ DECLARE c record; BEGIN
  FOR c IN SELECT conrelid::regclass AS place, conname FROM pg_constraint
            WHERE contype IN ('f', 'c') AND conrelid <> 0 AND connamespace = 'public'::regnamespace LOOP
    EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.place, c.conname);
  END LOOP; END $$`;

/** Applied and refused, with and without a note, a period and a key of their own. Gives the last entry. */
export async function decide(caller: Client, from: number, to: number): Promise<string> {
  const decisions = Array.from({ length: to - from }, (_, at) => {
    const n = from + at;
    const action = n % 5 === 0 ? 'case.close' : n % 5 === 1 ? 'report.file' : 'note.add';
    return {
      inputs: inputs({
        action,
        subject: { type: 'case', id: `Straße-${n % 50}` },
        params: { n, deep: [{ z: 1e-7, a: 'é\u2028' }], ...(n % 5 === 1 ? { reportingPeriod: '2026-Q4' } : {}) },
      }),
      ...(n % 2 === 0 ? { idempotencyKey: `key-${n}` } : {}),
      ...(n % 3 === 0 ? { note: `n° ${n} "😀"` } : {}),
    };
  });
  const { body } = await caller.post('/v1/decisions/batch', { decisions });
  return body.items.at(-1).body.ledgerEntryId;
}

/** Effects that the caller brought about elsewhere, three of four with a reference to there. Gives the last entry. */
async function call(caller: Client): Promise<string> {
  let last = '';
  for (let n = 0; n < CALLS; n += 1) {
    const subject = { type: 'order', id: `O-${n}` };
    const held = await claim(caller, {
      inputs: inputs({ action: 'call.out', subject, params: { n } }),
      note: `call ${n}`,
    });
    const { body } = await held.complete(
      n % 4 === 0
        ? { status: 'refused', reason: 'limit-reached' }
        : { status: 'applied', result: { paid: `${n}.00` }, externalRef: `pay-${n}` },
    );
    last = body.ledgerEntryId ?? last;
  }
  return last;
}

async function rowsOf(auditor: Client): Promise<Row[]> {
  const { text } = await auditor.get('/v1/exports/decisions?format=ndjson');
  const lines = text.trimEnd().split('\n').slice(0, -1);
  return lines.map((line): Row => JSON.parse(line)).toSorted((a, b) => a.leafIndex - b.leafIndex);
}

/** What should have been named and was not. */
export const unnamed = (verified: Verified, check: string, names: readonly string[]): string[] =>
  names.filter((name) => !isNamed(verified, check, name));

/** The entries that anything that failed names, by their index. */
export const namedEntries = ({ findings }: Verified): number[] =>
  findings
    .filter(({ status }) => status === 'failed')
    .flatMap(({ what }) => [...what.matchAll(/entry (\d+) \(/g)].map(([, index]) => Number(index)));

export const sorted = (indexes: readonly number[]): number[] => [...new Set(indexes)].toSorted((a, b) => a - b);
