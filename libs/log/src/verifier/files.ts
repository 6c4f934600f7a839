import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { type JsonObject, type JsonValue, parseStrictJson, StrictJsonError } from '#key';
import { LogError } from '../pure/log-error.js';
import { parseVerifierKey, type VerifierKey } from '../pure/note-key.js';

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The bytes of a file, or null if there is none. Any other reason why it cannot be read is thrown. */
export async function readIfThere(path: string): Promise<Buffer | null> {
  try {
    return await readFile(path);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** @throws LogError if the bytes are not UTF-8 */
export function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new LogError('This is not UTF-8.');
  }
}

/** @throws LogError if the bytes are not the strict JSON of an object */
export function parseObject(bytes: Uint8Array): JsonObject {
  try {
    const value = parseStrictJson(bytes);
    if (isObject(value)) return value;
  } catch (error) {
    if (!(error instanceof StrictJsonError)) throw error;
    throw new LogError(error.message);
  }
  throw new LogError('This is no JSON object.');
}

/** A verifier key a line; empty lines count for nothing. */
export function parseKeys(text: string): VerifierKey[] {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => parseVerifierKey(line.trim()));
}

/** The lines of a file with their ends, one at a time: a file may be larger than the memory. */
export async function* linesOf(path: string): AsyncGenerator<Buffer> {
  let begun: Buffer[] = [];
  for await (const chunk of createReadStream(path)) {
    const bytes: Buffer = chunk;
    let at = 0;
    for (let end = bytes.indexOf('\n'); end >= 0; end = bytes.indexOf('\n', at)) {
      yield Buffer.concat([...begun, bytes.subarray(at, end + 1)]);
      begun = [];
      at = end + 1;
    }
    if (at < bytes.length) begun.push(bytes.subarray(at));
  }
  if (begun.length > 0) yield Buffer.concat(begun);
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether an error says that there is no such file or folder. */
export function isMissing(error: unknown): boolean {
  return isSystemError(error) && (error.code === 'ENOENT' || error.code === 'ENOTDIR');
}

/** Whether something is an error of the file system, such as that a file may not be read. */
export function isSystemError(error: unknown): error is { code: unknown; syscall: unknown; message: string } {
  return typeof error === 'object' && error !== null && 'code' in error && 'syscall' in error && 'message' in error;
}
