import {
  bearer,
  decision,
  JSON_TYPE,
  jsonRequest,
  type Attempt,
  type Random,
  type Role,
  type Scene,
  type Variant,
} from './bad-case.js';
import { requestBytes } from './wire.js';

const KIB = 1024;
const BODY_MOST = 256 * KIB;
const BATCH_MOST = 4 * KIB * KIB;

/** Values of Idempotency-Key that are none. Each is sent as Latin-1. */
const BAD_KEYS: readonly string[] = [
  '',
  ' ',
  '\t',
  '""',
  '" "',
  '" k"',
  '"k "',
  '.',
  '..',
  '"."',
  '".."',
  'a b',
  'a,b',
  '"a", "b"',
  'a;b',
  'a;b=1',
  '"a";b',
  '"a";b="c"',
  '"a',
  'a"',
  '"a" x',
  '"a"b"',
  'a\\',
  '"a\\"',
  '"a\\x"',
  '("a" "b")',
  'k\xe9',
  '"k\xe9"',
  '\x80',
  '"\xff"',
  'k\tk',
  '"k\tk"',
  '"a\\\\\\"',
  'k\xa0',
  '"k1" "k2"',
];

/** A decision sent with header lines of one's own; what follows the credential is up to the lines. */
function withLines(random: Random, lines: readonly string[], body = JSON.stringify(decision(random))): Attempt {
  return {
    sent: `${lines.join(' | ').slice(0, 300)} (${body.length})`,
    bytes: requestBytes('POST', '/v1/decisions', lines, body),
  };
}

const badKey = (name: string, lines: (random: Random) => readonly string[], path = '/v1/decisions'): Variant => ({
  name,
  status: 400,
  code: 'invalid-idempotency-key',
  make: (random, scene) => {
    const body = decision(random);
    const text = JSON.stringify(path === '/v1/decisions' ? body : { decisions: [body] });
    return jsonRequest(scene, { path, lines: lines(random) }, text);
  },
});

const unsupported = (name: string, lines: (random: Random) => readonly string[]): Variant => ({
  name,
  status: 415,
  code: 'unsupported-media-type',
  make: (random, scene) =>
    withLines(random, [bearer(scene, random.pick<Role>('orchestrator', 'auditor')), ...lines(random)]),
});

const stranger = (name: string, authorization: (random: Random, scene: Scene) => string | null): Variant => ({
  name,
  status: 401,
  code: 'unauthenticated',
  make: (random, scene) => {
    const value = authorization(random, scene);
    // Bytes and shape come after the credential: whatever is wrong with them must not show.
    const body = random.pick(JSON.stringify(decision(random)), '{', '', '\u0000', '{"inputs":1}');
    return withLines(random, [...(value === null ? [] : [`Authorization: ${value}`]), JSON_TYPE], body);
  },
});

/** A token with one part spoilt. */
function spoilt(token: string, random: Random): string {
  const at = random.whole(0, token.length - 1);
  const other = token[at] === 'Q' ? 'R' : 'Q';
  return random.pick(
    token.slice(0, at),
    `${token.slice(0, at)}${other}${token.slice(at + 1)}`,
    `${token}x`,
    `x${token}`,
    token.toUpperCase(),
    token.replace('dlk', 'dl'),
  );
}

export const BAD_HEADERS: readonly Variant[] = [
  badKey('an Idempotency-Key that is none', (random) => [`Idempotency-Key: ${random.pick(...BAD_KEYS)}`]),
  badKey('an Idempotency-Key that is too long', (random) => {
    const key = 'k'.repeat(random.whole(256, 2000));
    return [`Idempotency-Key: ${random.pick(key, `"${key}"`, `"${'\\"'.repeat(256)}"`)}`];
  }),
  badKey('an Idempotency-Key with 8-bit bytes', (random) => {
    const byte = String.fromCharCode(random.whole(0x80, 0xff));
    return [
      `Idempotency-Key: ${random.pick(`k${byte}`, `${byte}k`, `"k${byte}"`, Buffer.from('ключ').toString('latin1'))}`,
    ];
  }),
  badKey('an Idempotency-Key sent twice', (random) => {
    const key = random.word();
    return [
      `Idempotency-Key: ${key}`,
      `${random.pick('Idempotency-Key', 'idempotency-key', 'IDEMPOTENCY-KEY')}: ${random.pick(key, 'other', '')}`,
    ];
  }),
  badKey(
    'an Idempotency-Key on a batch',
    (random) => [`Idempotency-Key: ${random.pick('k', '"k"', '', '"')}`],
    '/v1/decisions/batch',
  ),
  {
    name: 'a content key that the inputs do not give',
    status: 422,
    code: 'key-derivation-mismatch',
    make: (random, scene) =>
      jsonRequest(
        scene,
        {
          lines: [
            `Idempotency-Key: ${random.pick('dk_', 'dk_acme_', `dk_acme_${'0'.repeat(40)}`, `"dk_other_${'a'.repeat(40)}"`, 'dk_x', scene.contentKey)}`,
          ],
        },
        JSON.stringify(decision(random)),
      ),
  },
  unsupported('another media type', (random) => [
    `Content-Type: ${random.pick('text/plain', 'text/json', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/xml', 'application/jsonx', 'application/problem+json', 'application/json-seq', 'json', '*/*', 'application', 'application/', '/json', 'a', ';', 'text/plain; application/json')}`,
  ]),
  unsupported('no media type', () => []),
  unsupported('two media types, the first another', () => [
    'Content-Type: text/plain',
    'Content-Type: application/json',
  ]),
  unsupported('another charset', (random) => [
    `Content-Type: application/json; charset=${random.pick('latin1', 'iso-8859-1', 'utf-16', 'utf-16le', 'utf-32', 'us-ascii', '"utf-16"', 'windows-1252')}`,
  ]),
  unsupported('a content coding', (random) => [
    JSON_TYPE,
    `Content-Encoding: ${random.pick('gzip', 'br', 'deflate', 'zstd', 'x-gzip', 'identity, gzip', 'gzip, identity', 'GZIP', 'nonsense')}`,
  ]),
  {
    name: 'a body over the limit of its route',
    status: 413,
    code: 'too-large',
    make: (random, scene) => {
      const role = random.pick<Role>('orchestrator', 'auditor', 'operator');
      const isBatch = random.whole(1, 10) === 1;
      const size = (isBatch ? BATCH_MOST : BODY_MOST) + random.pick(1, 2, 1000);
      return jsonRequest(
        scene,
        { path: isBatch ? '/v1/decisions/batch' : '/v1/decisions', role },
        random.pick(' ', '[', 'x').repeat(size),
      );
    },
  },
  {
    name: 'a body over the limit, in chunks and without a length',
    status: 413,
    code: 'too-large',
    make: (_random, scene) => {
      const chunk = `10000\r\n${' '.repeat(0x10000)}\r\n`;
      const lines = [bearer(scene, 'orchestrator'), JSON_TYPE, 'Transfer-Encoding: chunked'];
      return {
        sent: '5 chunks of 64 KiB',
        bytes: Buffer.concat([
          requestBytes('POST', '/v1/decisions', lines),
          Buffer.from(`${chunk.repeat(5)}0\r\n\r\n`),
        ]),
      };
    },
  },
  stranger('no credential', () => null),
  stranger('a credential in another form', (random, scene) =>
    random.pick(
      '',
      'Bearer',
      'Bearer ',
      'Basic YTpi',
      'Digest x',
      scene.tokens.admin,
      `Token ${scene.tokens.admin}`,
      `Bearer ${scene.tokens.admin} x`,
      `Bearer "${scene.tokens.admin}"`,
      `Bearer,${scene.tokens.admin}`,
      'Bearer dlk__',
      'Bearer \xff\xfe',
      `Bearer ${'a'.repeat(8000)}`,
      'Bearer null',
      'Bearer ../../x',
      "Bearer ' OR 1=1--",
    ),
  ),
  stranger(
    'a credential with a part spoilt',
    (random, scene) =>
      `Bearer ${spoilt(scene.tokens[random.pick<Role>('admin', 'orchestrator', 'auditor', 'operator')], random)}`,
  ),
  stranger(
    'a credential that nobody has',
    (random) => `Bearer dlk_${'0123456789abcdef'.charAt(random.whole(0, 15)).repeat(20)}_${'A'.repeat(43)}`,
  ),
  stranger('the id of one and the secret of another', (_random, scene) => {
    const [, id] = scene.tokens.orchestrator.split('_');
    return `Bearer dlk_${id}_${scene.tokens.admin.split('_').slice(2).join('_')}`;
  }),
  {
    name: 'a role that may not, whatever the body',
    status: 403,
    code: 'forbidden',
    make: (random, scene) => {
      const [method, path, role] = random.pick(
        ['POST', '/v1/decisions', 'auditor'] as const,
        ['POST', '/v1/decisions', 'admin'] as const,
        ['POST', '/v1/decisions', 'operator'] as const,
        ['POST', '/v1/decisions/batch', 'auditor'] as const,
        ['PUT', '/v1/actions/note.add', 'orchestrator'] as const,
        ['PUT', '/v1/actions/note.add', 'auditor'] as const,
        ['POST', '/v1/credentials', 'auditor'] as const,
        ['POST', '/v1/credentials', 'operator'] as const,
        ['POST', '/v1/tenants', 'admin'] as const,
      );
      return jsonRequest(
        scene,
        { method, path, role },
        random.pick('{}', '{', '\u0000', '[1', JSON.stringify(decision(random))),
      );
    },
  },
];
