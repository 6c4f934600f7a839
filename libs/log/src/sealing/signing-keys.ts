import { randomBytes, type KeyObject } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SettingError } from '#database';
import { LogError } from '../pure/log-error.js';
import { parsePrivateKey, signerKey, type SignerKey } from '../pure/note-key.js';

/** What an operator sets of the log. */
export interface LogSettings {
  readonly logOrigin: string;
  readonly logSigningKey: string | null;
  readonly logPreviousSigningKey: string | null;
  readonly dataDir: string;
}

export const KEY_FILE = 'log-signing-key';

const KEY_BYTES = 32;

/** The private keys of a sealer. One key signs for all tenants, under another name for each. */
export class SigningKeys {
  private readonly origin: string;
  private readonly current: KeyObject;
  private readonly previous: KeyObject | null;
  /** Whether nobody chose the key: it was found in DATA_DIR, or made there. */
  readonly isMade: boolean;

  /** @throws SettingError for a key that cannot be read; its message does not repeat the key */
  constructor({ logOrigin, logSigningKey, logPreviousSigningKey, dataDir }: LogSettings) {
    this.origin = logOrigin;
    this.isMade = logSigningKey === null;
    this.current =
      logSigningKey === null ? read(join(dataDir, KEY_FILE), keyIn(dataDir)) : read('LOG_SIGNING_KEY', logSigningKey);
    this.previous = logPreviousSigningKey === null ? null : read('LOG_PREVIOUS_SIGNING_KEY', logPreviousSigningKey);
  }

  originOf(tenant: string): string {
    return `${this.origin}/${tenant}`;
  }

  /** Who signs for a tenant: the current key, and the previous one for as long as it is set. */
  signersOf(tenant: string): SignerKey[] {
    return [this.current, ...(this.previous === null ? [] : [this.previous])].map((key) =>
      signerKey(this.originOf(tenant), key),
    );
  }
}

function read(from: string, text: string): KeyObject {
  try {
    return parsePrivateKey(text);
  } catch (error) {
    if (!(error instanceof LogError)) throw error;
    throw new SettingError(
      `${from} must be an Ed25519 private key: 32 bytes in base64, PKCS #8 in PEM, or PRIVATE+KEY+…; this is none`,
    );
  }
}

/**
 * The key that is kept in DATA_DIR, for its owner alone; made if there is none. Of several processes that start at once the
 * first to link its own in wins, and all read that one.
 */
function keyIn(dataDir: string): string {
  const file = join(dataDir, KEY_FILE);
  const found = textOf(file);
  if (found !== null) return found;
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, `${randomBytes(KEY_BYTES).toString('base64')}\n`, { mode: 0o600, flush: true });
  try {
    linkSync(draft, file);
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error;
  } finally {
    rmSync(draft);
  }
  return readFileSync(file, 'utf8');
}

function textOf(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (isCode(error, 'ENOENT')) return null;
    throw error;
  }
}

const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code;
