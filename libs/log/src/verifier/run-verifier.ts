import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { LogError } from '../pure/log-error.js';
import type { VerifierKey } from '../pure/note-key.js';
import { type Check, type Verdict, verdictOf } from './check.js';
import { decode, isSystemError, parseKeys, parseObject } from './files.js';
import { verifyBundle } from './verify-bundle.js';
import { verifyCheckpoints } from './verify-consistency.js';
import { verifyReceipt } from './verify-receipt.js';

const USAGE = `Checks what a decision ledger says, without the ledger, its database or a network.

  decision-ledger-verify receipt <receipt> --key <key> --entry <file> [--row <file>]
  decision-ledger-verify consistency <earlier> <later> --key <key> [--proof <file>]
  decision-ledger-verify bundle <folder> --key <key> --earlier <checkpoint> [--part]

  --key      a verifier key of the log, or a file with one a line; may be repeated
  --entry    the ledger entry as the service gives it, or the bytes of its leaf
  --row      the decision's row of an export, to compare its payloads with the entry
  --proof    the answer of /v1/log/proofs/consistency
  --earlier  a checkpoint kept from earlier
  --part     the export was made with filters
  --json     the result as JSON

Exit code: 0 all is ok, 1 something failed, 2 called wrongly, 3 nothing failed, but not everything was checked.
`;

const EXIT_CODES: Readonly<Record<Verdict, number>> = { ok: 0, failed: 1, incomplete: 3 };
const CALLED_WRONGLY = 2;

/** On long runs a line is written after each so many. */
const PROGRESS_EVERY = 100_000;

export interface VerifierOutput {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

/** Whoever calls it wrongly is told how. */
class UsageError extends Error {}

/**
 * The program `decision-ledger-verify`.
 *
 * @param args as they are given on the command line
 * @returns the exit code
 */
export async function runVerifier(args: readonly string[], { out, err }: VerifierOutput): Promise<number> {
  try {
    const { positionals, values } = parse(args);
    if (values.help === true) {
      out(USAGE);
      return 0;
    }
    const checks = await verify(positionals, values, err);
    const verdict = verdictOf(checks);
    out(
      values.json === true
        ? `${JSON.stringify({ verdict, checks }, null, 2)}\n`
        : `${[...checks, verdict].join('\n')}\n`,
    );
    return EXIT_CODES[verdict];
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof LogError || isSystemError(error))) throw error;
    err(`decision-ledger-verify: ${error.message}\n`);
    if (error instanceof UsageError) err(`\n${USAGE}`);
    return CALLED_WRONGLY;
  }
}

type Values = ReturnType<typeof parse>['values'];

function parse(args: readonly string[]) {
  const options = {
    key: { type: 'string', multiple: true },
    entry: { type: 'string' },
    row: { type: 'string' },
    proof: { type: 'string' },
    earlier: { type: 'string' },
    part: { type: 'boolean' },
    json: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  } as const;
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

async function verify(positionals: readonly string[], values: Values, err: VerifierOutput['err']): Promise<Check[]> {
  const [what, ...given] = positionals;
  const [first, second] = given;
  const keys = await readKeys(values.key ?? []);
  if (what === 'bundle' && first !== undefined && given.length === 1) {
    refuse(values, 'entry', 'row', 'proof');
    if (!existsSync(first)) throw new UsageError(`There is no folder ${first}.`);
    const earlier = await readIfGiven(values.earlier);
    const options = { keys, earlier: earlier === null ? null : decode(earlier), isPart: values.part ?? false };
    return verifyBundle(first, { ...options, progress: progressOn(err) });
  }
  if (keys.length === 0) throw new UsageError('A key is needed: without it a signature says nothing.');
  if (what === 'receipt' && first !== undefined && given.length === 1) {
    refuse(values, 'proof', 'earlier', 'part');
    const [entry, row] = [await readIfGiven(values.entry), await readIfGiven(values.row)];
    const options = { keys, entry, row: row === null ? null : parseObject(row) };
    return verifyReceipt(decode(await readFile(first)), options);
  }
  if (what === 'consistency' && first !== undefined && second !== undefined && given.length === 2) {
    refuse(values, 'entry', 'row', 'earlier', 'part');
    const proof = await readIfGiven(values.proof);
    const [earlier, later] = [decode(await readFile(first)), decode(await readFile(second))];
    return verifyCheckpoints(earlier, later, { keys, proof: proof === null ? null : parseObject(proof) });
  }
  throw new UsageError('Say what is to be checked.');
}

/** An option that would be ignored is refused: its giver may think that it was looked at. */
function refuse(values: Values, ...names: (keyof Values)[]): void {
  const name = names.find((name) => values[name] !== undefined);
  if (name !== undefined) throw new UsageError(`--${name} is of no use here.`);
}

async function readKeys(given: readonly string[]): Promise<VerifierKey[]> {
  const keys = given.map(async (key) => {
    try {
      return parseKeys(existsSync(key) ? decode(await readFile(key)) : key);
    } catch (error) {
      if (!(error instanceof LogError)) throw error;
      throw new UsageError(`--key ${key}: neither a verifier key nor a file of such keys. ${error.message}`);
    }
  });
  return (await Promise.all(keys)).flat();
}

async function readIfGiven(path: string | undefined): Promise<Buffer | null> {
  return path === undefined ? null : readFile(path);
}

function progressOn(err: VerifierOutput['err']) {
  let told = 0;
  return (done: number, whole: number, what: string): void => {
    if (done < told) told = 0;
    if (done - told < PROGRESS_EVERY) return;
    told = done;
    err(`${done.toLocaleString('en')} of ${whole.toLocaleString('en')} ${what}\n`);
  };
}
