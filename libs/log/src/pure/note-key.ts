import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { sha256 } from '#key';
import { LogError } from './log-error.js';

/** Keys of the C2SP specification signed-note, of its one kind that is used here: Ed25519. */

export interface VerifierKey {
  readonly name: string;
  /** Eight hex digits. Together with the name it says which key it is; it is too short to say more. */
  readonly id: string;
  readonly publicKey: KeyObject;
}

export interface SignerKey extends VerifierKey {
  readonly privateKey: KeyObject;
}

/** What the specification calls the signature type: it stands before the key. */
const ED25519 = Buffer.from([1]);

const KEY_BYTES = 32;

/** PKCS #8 of an Ed25519 seed (RFC 8410, section 7) is these bytes and the seed. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

const KEY_TEXT = /^(PRIVATE\+KEY\+)?([^+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+={0,2})$/;

/** A name has at least one character, no space of any kind, no plus and nothing that cannot be printed. */
export function isKeyName(name: string): boolean {
  return /^[^\s\p{Cc}\p{Surrogate}+]+$/u.test(name);
}

/**
 * The key that `<name>+<id>+<base64>` says.
 *
 * @throws LogError if it is not of that form, of another kind than Ed25519, or its id is not the one of its bytes
 */
export function parseVerifierKey(text: string): VerifierKey {
  const { isPrivate, name, id, key } = parseKeyText(text);
  if (isPrivate) throw new LogError('This is a private key, where a public one is wanted.');
  return checkedId(verifierKey(name, publicKeyOf(key)), id);
}

/** As {@link parseVerifierKey} reads it. */
export function formatVerifierKey({ name, id, publicKey }: VerifierKey): string {
  return `${name}+${id}+${Buffer.concat([ED25519, rawPublicKey(publicKey)]).toString('base64')}`;
}

/** The signer that `PRIVATE+KEY+<name>+<id>+<base64>` says. */
export function parseSignerKey(text: string): SignerKey {
  const { isPrivate, name, id, key } = parseKeyText(text);
  if (!isPrivate) throw new LogError('This is no private key.');
  return checkedId(signerKey(name, privateKeyOf(key)), id);
}

export function verifierKey(name: string, publicKey: KeyObject): VerifierKey {
  if (!isKeyName(name)) throw new LogError(`${JSON.stringify(name)} cannot name a key.`);
  const digest = sha256(Buffer.concat([Buffer.from(`${name}\n`), ED25519, rawPublicKey(publicKey)]));
  return { name, id: digest.toString('hex', 0, 4), publicKey };
}

/** One private key may sign under many names: the id is another one for each. */
export function signerKey(name: string, privateKey: KeyObject): SignerKey {
  return { ...verifierKey(name, createPublicKey(privateKey)), privateKey };
}

/**
 * A private key as settings hold it: PKCS #8 in PEM, 32 bytes in base64, or the form of {@link parseSignerKey}, of which the
 * name then counts for nothing.
 *
 * @throws LogError if it is none of them or not of Ed25519; the message does not repeat the text
 */
export function parsePrivateKey(text: string): KeyObject {
  const given = text.trim();
  if (given.startsWith('PRIVATE+KEY+')) return parseSignerKey(given).privateKey;
  if (!given.startsWith('-----BEGIN')) return privateKeyOf(decodeBase64(given));
  try {
    const key = createPrivateKey(given);
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch {
    // What OpenSSL says of a key that it cannot read helps nobody.
  }
  throw new LogError('The private key is not PKCS #8 of Ed25519.');
}

/** Bytes in base64 as RFC 4648 writes them (section 4): padded, nothing between, no spare bits set. */
export function decodeBase64(text: string): Buffer {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64') !== text) throw new LogError('This is not base64.');
  return bytes;
}

function parseKeyText(text: string): { isPrivate: boolean; name: string; id: string; key: Buffer } {
  const [, isPrivate, name, id, base64] = KEY_TEXT.exec(text) ?? [];
  if (name === undefined || id === undefined || base64 === undefined) throw new LogError('This is no key of a note.');
  const bytes = decodeBase64(base64);
  if (bytes[0] !== ED25519[0]) throw new LogError('The key is not of Ed25519.');
  return { isPrivate: isPrivate !== undefined, name, id, key: bytes.subarray(1) };
}

function checkedId<T extends VerifierKey>(key: T, id: string): T {
  if (key.id !== id) throw new LogError(`The key says that its id is ${id}, but it is ${key.id}.`);
  return key;
}

function publicKeyOf(raw: Buffer): KeyObject {
  if (raw.length !== KEY_BYTES) throw new LogError(`A public key has 32 bytes, not ${raw.length}.`);
  return createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x: raw.toString('base64url') } });
}

function privateKeyOf(seed: Buffer): KeyObject {
  if (seed.length !== KEY_BYTES) throw new LogError(`A private key has 32 bytes, not ${seed.length}.`);
  return createPrivateKey({ format: 'der', type: 'pkcs8', key: Buffer.concat([PKCS8_PREFIX, seed]) });
}

function rawPublicKey(key: KeyObject): Buffer {
  if (key.asymmetricKeyType !== 'ed25519') throw new LogError('The key is not of Ed25519.');
  return Buffer.from(key.export({ format: 'jwk' }).x ?? '', 'base64url');
}
