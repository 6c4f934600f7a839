import { sign, verify } from 'node:crypto';
import { LogError } from './log-error.js';
import { decodeBase64, isKeyName, type SignerKey, type VerifierKey } from './note-key.js';

/** Signed notes, as the C2SP specification signed-note lays them down. */

/** The specification wants 16 at least to be borne; a note with more than these is an attempt to keep us busy. */
const MAX_SIGNATURES = 100;

const SIGNATURE_LINE = /^— (\S+) (\S+)$/u;

const ID_BYTES = 4;

interface Signature {
  readonly name: string;
  readonly id: string;
  readonly bytes: Buffer;
}

/**
 * The text with a signature line for each key, in their order. While keys change, the new and the old one both sign.
 *
 * @throws LogError if the text is none that a note can have: it ends its last line, and has no control characters
 */
export function signNote(text: string, signers: readonly SignerKey[]): string {
  if (!text.endsWith('\n') || !isPlain(text)) throw new LogError('The text is none that a note can have.');
  if (signers.length === 0) throw new LogError('A note needs a signature.');
  const lines = signers.map(({ name, id, privateKey }) => {
    const signature = Buffer.concat([Buffer.from(id, 'hex'), sign(null, Buffer.from(text), privateKey)]);
    return `— ${name} ${signature.toString('base64')}\n`;
  });
  return `${text}\n${lines.join('')}`;
}

/**
 * The text of a note that at least one of the keys has signed, and by which it is. A signature of an unknown key counts for
 * nothing; a wrong one of a known key spoils the note, whatever other signatures it has.
 *
 * @throws LogError if the note is ill-formed, if none of the keys has signed it, or if a signature is wrong
 */
export function openNote(note: string, keys: readonly VerifierKey[]): { text: string; signedBy: VerifierKey[] } {
  const { text, signatures } = parseNote(note);
  const known = keys.flatMap((key) => {
    const own = signatures.filter(({ name, id }) => name === key.name && id === key.id);
    if (own.some(({ bytes }) => !verify(null, Buffer.from(text), key.publicKey, bytes)))
      throw new LogError(`The signature of ${key.name}+${key.id} is wrong.`);
    return own.length > 0 ? [key] : [];
  });
  if (known.length === 0) {
    const signers = signatures.map(({ name, id }) => `${name}+${id}`).join(', ');
    throw new LogError(`None of the known keys has signed the note; ${signers} did.`);
  }
  return { text, signedBy: known };
}

/**
 * The text and the signatures as they stand: nothing is verified, so nothing that it says may be believed.
 *
 * @throws LogError if the note is ill-formed
 */
export function parseNote(note: string): { text: string; signatures: Signature[] } {
  const split = note.lastIndexOf('\n\n');
  if (split < 0 || !note.endsWith('\n') || !isPlain(note)) throw new LogError('The note is ill-formed.');
  const lines = note.slice(split + 2, -1).split('\n');
  if (lines.length > MAX_SIGNATURES) throw new LogError(`The note has ${lines.length} signatures.`);
  return { text: note.slice(0, split + 1), signatures: lines.map(parseSignature) };
}

function parseSignature(line: string): Signature {
  const [, name, base64] = SIGNATURE_LINE.exec(line) ?? [];
  if (name === undefined || base64 === undefined || !isKeyName(name))
    throw new LogError(`${JSON.stringify(line)} is no signature line.`);
  const bytes = decodeBase64(base64);
  if (bytes.length <= ID_BYTES) throw new LogError(`The signature of ${name} is too short.`);
  return { name, id: bytes.toString('hex', 0, ID_BYTES), bytes: bytes.subarray(ID_BYTES) };
}

/** Without control characters of ASCII other than the end of a line, and without halves of characters. */
function isPlain(text: string): boolean {
  return !/\p{Surrogate}/u.test(text) && [...text].every((character) => character >= ' ' || character === '\n');
}
