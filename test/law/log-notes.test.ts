import { describe, expect, test } from '@jest/globals';
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import {
  EMPTY_ROOT,
  formatVerifierKey,
  LogError,
  openCheckpoint,
  openNote,
  parsePrivateKey,
  parseSignerKey,
  parseVerifierKey,
  readCheckpoint,
  signCheckpoint,
  signerKey,
  signNote,
} from '#log';

// Published for tests: the example of the specification's first implementation.
const PETER = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW';
const PETERS_PRIVATE = 'PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz';
const PETERS_NOTE =
  'If you think cryptography is the answer to your problem,\n' +
  "then you don't know what your problem is.\n\n" +
  '— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n';

const peter = parseVerifierKey(PETER);
const seed = (byte: number): string => Buffer.alloc(32, byte).toString('base64');
const NAME = 'log.example/acme';
const current = signerKey(NAME, parsePrivateKey(seed(1)));
const retired = signerKey(NAME, parsePrivateKey(seed(2)));

describe('keys', () => {
  test('are written as they were read', () => {
    expect(formatVerifierKey(peter)).toBe(PETER);
    expect(formatVerifierKey(parseSignerKey(PETERS_PRIVATE))).toBe(PETER);
    expect(formatVerifierKey(parseVerifierKey(formatVerifierKey(current)))).toBe(formatVerifierKey(current));
  });

  test('one private key has another id under another name', () => {
    expect(signerKey('log.example/other', current.privateKey).id).not.toBe(current.id);
    expect(current.id).toMatch(/^[0-9a-f]{8}$/);
  });

  test('are taken from PKCS #8, from 32 bytes in base64 and from the form of a note', () => {
    const pem = current.privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
    for (const given of [pem, ` ${seed(1)}\n`])
      expect(createPublicKey(parsePrivateKey(given)).equals(current.publicKey)).toBe(true);
    expect(createPublicKey(parsePrivateKey(PETERS_PRIVATE)).equals(peter.publicKey)).toBe(true);
  });

  test.each([
    ['nothing', ''],
    [
      'a key of another kind',
      generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
    ],
    ['a public key', createPublicKey(current.privateKey).export({ format: 'pem', type: 'spki' }).toString()],
    ['too few bytes', Buffer.alloc(31).toString('base64')],
    ['hex', Buffer.alloc(32, 9).toString('hex')],
    ['a passphrase', 'correct horse battery staple'],
    ['a broken note form', PETERS_PRIVATE.replace('c74f20a3', 'c74f20a4')],
  ])('%s is no private key, and what was given is not repeated', (_name, given) => {
    expect(() => parsePrivateKey(given)).toThrow(LogError);
    expect(() => parsePrivateKey(given)).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('horse') }),
    );
  });

  test.each([
    ['nothing', ''],
    ['no id', PETER.replace('+c74f20a3', '')],
    ['a wrong id', PETER.replace('c74f20a3', 'c74f20a4')],
    ['an id in capitals', PETER.replace('c74f20a3', 'C74F20A3')],
    ['another name', PETER.replace('Peter', 'Petra')],
    ['a name with a space', PETER.replace('Peter', 'Peter ')],
    ['no name', PETER.replace('PeterNeumann', '')],
    ['another kind of key', PETER.replace('ARpc', 'Ahpc')],
    ['31 bytes', `${PETER.slice(0, -4)}`],
    ['base64 with spare bits', `${PETER.slice(0, -1)}X=`],
    ['something after it', `${PETER}\n`],
    ['a private key', PETERS_PRIVATE],
  ])('%s: no verifier key', (_name, text) => {
    expect(() => parseVerifierKey(text)).toThrow(LogError);
  });
});

describe('a note', () => {
  test('of another implementation is opened, and signed again to the byte', () => {
    const { text, signedBy } = openNote(PETERS_NOTE, [peter]);
    expect(signedBy).toEqual([peter]);
    expect(signNote(text, [parseSignerKey(PETERS_PRIVATE)])).toBe(PETERS_NOTE);
  });

  test('with two signatures is opened by who knows the old key, the new one, or both', () => {
    const note = signNote('text\n\nmore\n', [current, retired]);
    expect(note.match(/^— /gmu)).toHaveLength(2);
    for (const keys of [[current], [retired], [retired, current], [current, peter]])
      expect(openNote(note, keys)).toEqual({ text: 'text\n\nmore\n', signedBy: keys.filter((key) => key !== peter) });
    expect(() => openNote(note, [peter])).toThrow(`None of the known keys has signed the note; ${NAME}+${current.id}`);
    expect(() => openNote(note, [])).toThrow(LogError);
  });

  test('whose signature stands under another name is signed by nobody who is known', () => {
    const renamed = signNote('text\n', [current]).replace(`— ${NAME}`, '— log.example/other');
    expect(() => openNote(renamed, [current])).toThrow('None of the known keys has signed the note');
  });

  test('is spoilt by one wrong signature of a known key, though another is right', () => {
    const [good, other] = [signNote('a\n', [current]), signNote('b\n', [retired])];
    const mixed = good + other.slice(other.indexOf('— '));
    expect(openNote(mixed, [current]).signedBy).toEqual([current]);
    expect(() => openNote(mixed, [current, retired])).toThrow(/signature of .* is wrong/);
  });

  test('with any byte of its text changed is refused', () => {
    const note = signNote('log\n5\nroot\n', [current]);
    for (let at = 0; at < 'log\n5\nroot\n'.length; at++) {
      const changed = `${note.slice(0, at)}~${note.slice(at + 1)}`;
      expect(() => openNote(changed, [current])).toThrow(LogError);
    }
  });

  const note = signNote('text\n', [current]);
  test.each([
    ['nothing', ''],
    ['no signature', 'text\n\n'],
    ['no empty line', note.replace('\n\n', '\n')],
    ['no end of its last line', note.slice(0, -1)],
    ['an empty line at the end', `${note}\n`],
    ['a hyphen for the dash', note.replace('—', '-')],
    ['two spaces after the dash', note.replace('— ', '—  ')],
    ['something after the signature', note.replace(/\n$/, ' x\n')],
    ['a plus in the name', note.replace(`— ${NAME}`, '— a+b')],
    ['a signature of no bytes', `text\n\n— ${NAME} ${Buffer.from(current.id, 'hex').toString('base64')}\n`],
    ['a signature that is no base64', note.replace(/\n$/, '!\n')],
    ['a carriage return', note.replace('text\n', 'text\r\n')],
    ['a tabulator', note.replace('text', 'te\txt')],
    ['half a character', note.replace('text', 'te\ud800xt')],
    ['a hundred signatures and one', note + note.slice(note.indexOf('— ')).repeat(100)],
  ])('with %s is none', (_name, text) => {
    expect(() => openNote(text, [current])).toThrow(LogError);
  });

  test('cannot be made of a text that no note may have, nor without a signer', () => {
    for (const text of ['', 'no end', 'a\tb\n', 'a\ud800\n']) expect(() => signNote(text, [current])).toThrow(LogError);
    expect(() => signNote('a\n', [])).toThrow(LogError);
  });
});

describe('a checkpoint', () => {
  const root = Buffer.alloc(32, 3);
  const checkpoint = { origin: NAME, size: 20_852_163, root };
  const note = signCheckpoint(checkpoint, [current, retired]);

  test('is three lines and the signatures', () => {
    expect(note).toMatch(
      /^log\.example\/acme\n20852163\n[\w+/]{43}=\n\n— log\.example\/acme \S+\n— log\.example\/acme \S+\n$/u,
    );
    expect(openCheckpoint(note, [current])).toEqual(checkpoint);
    expect(openCheckpoint(note, [retired])).toEqual(checkpoint);
    expect(readCheckpoint(note)).toEqual(checkpoint);
  });

  test('of the empty tree has the root of the empty tree', () => {
    const empty = { origin: NAME, size: 0, root: EMPTY_ROOT };
    expect(openCheckpoint(signCheckpoint(empty, [current]), [current])).toEqual(empty);
    expect(() => signCheckpoint({ ...empty, root }, [current])).toThrow(LogError);
  });

  test('may have extension lines', () => {
    const extended = signNote(`${NAME}\n7\n${root.toString('base64')}\nmore\n`, [current]);
    expect(openCheckpoint(extended, [current])).toEqual({ origin: NAME, size: 7, root });
  });

  test('of one log that is signed by the key of another is refused', () => {
    const other = signerKey('log.example/other', current.privateKey);
    expect(() => openCheckpoint(signCheckpoint(checkpoint, [other]), [other])).toThrow(/has signed it/);
  });

  test.each([
    ['two lines', `${NAME}\n7\n`],
    ['no origin', `\n7\n${root.toString('base64')}\n`],
    ['a size with a zero before it', `${NAME}\n07\n${root.toString('base64')}\n`],
    ['a size with a sign', `${NAME}\n+7\n${root.toString('base64')}\n`],
    ['a size that is no number', `${NAME}\nseven\n${root.toString('base64')}\n`],
    ['a size beyond 2^53', `${NAME}\n9007199254740993\n${root.toString('base64')}\n`],
    ['a root in hex', `${NAME}\n7\n${root.toString('hex')}\n`],
    ['a root of 31 bytes', `${NAME}\n7\n${Buffer.alloc(31).toString('base64')}\n`],
    ['an empty line', `${NAME}\n7\n${root.toString('base64')}\n\nmore\n`],
  ])('with %s is none, though it is signed', (_name, text) => {
    expect(() => openCheckpoint(signNote(text, [current]), [current])).toThrow(LogError);
  });
});
