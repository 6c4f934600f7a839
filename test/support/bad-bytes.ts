import { jsonRequest, type Attempt, type Random, type Role, type Scene, type Variant } from './bad-case.js';
import { inputs } from './client.js';

/** Where a value stands in a body that is otherwise sound, on a route that takes it. */
interface Place {
  readonly method: string;
  readonly path: string;
  readonly role: Role;
  readonly pointer: string;
  readonly before: string;
  readonly after: string;
}

const MARK = '"\u2400"';

function place(method: string, path: string, role: Role, pointer: string, body: unknown): Place {
  const [before = '', after = ''] = JSON.stringify(body).split(MARK);
  return { method, path, role, pointer, before, after };
}

const hole = '\u2400';

/** Every route that takes a body, and in the widest of them several depths and orders. */
const PLACES: readonly Place[] = [
  ...(
    [
      ['/inputs/params/x', { inputs: inputs({ params: { x: hole } }) }],
      ['/inputs/params/x/1/y', { inputs: inputs({ params: { x: [0, { y: hole }], z: 1 } }) }],
      ['/inputs/subject/id', { inputs: inputs({ subject: { type: 'bad', id: hole } }) }],
      ['/note', { inputs: inputs(), note: hole }],
      ['/evidence/rationale', { inputs: inputs(), evidence: { rationale: hole } }],
      ['/a~1b~0c', { 'a/b~c': hole }],
    ] as const
  ).map(([pointer, body]) => place('POST', '/v1/decisions', 'orchestrator', pointer, body)),
  place('POST', '/v1/decisions/batch', 'orchestrator', '/decisions/1/inputs/params/x', {
    decisions: [{ inputs: inputs() }, { inputs: inputs({ params: { x: hole } }) }],
  }),
  place('PUT', '/v1/actions/bad.action', 'admin', '/paramsSchema/x', {
    execution: 'transactional',
    paramsSchema: { x: hole },
  }),
  place('POST', '/v1/credentials', 'admin', '/name', { role: 'auditor', name: hole }),
  place('POST', '/v1/tenants', 'operator', '/tenant', { tenant: hole }),
];

const utf8 = (text: string): Buffer => Buffer.from(text, 'utf8');
const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1');

/** A fault in one value: the answer names its place, or the place inside it that `within` gives. */
function inValue(name: string, fragment: (random: Random) => Buffer | string, within: string | null = ''): Variant {
  return malformed(name, (random, scene) => {
    const at = random.pick(...PLACES);
    const body = Buffer.concat([utf8(at.before), Buffer.from(fragment(random)), utf8(at.after)]);
    const attempt = jsonRequest(scene, at, body);
    return within === null ? attempt : { ...attempt, pointer: at.pointer + within };
  });
}

/** A fault of the body as a whole. */
function ofBody(name: string, body: (sound: string, random: Random) => Buffer | string): Variant {
  return malformed(name, (random, scene) => {
    const at = random.pick(...PLACES);
    return jsonRequest(scene, at, body(`${at.before}"x"${at.after}`, random));
  });
}

function malformed(name: string, make: (random: Random, scene: Scene) => Attempt): Variant {
  return { name, status: 400, code: 'malformed-request', make };
}

/** Bytes that are not UTF-8: cut short, over-long, surrogates, beyond U+10FFFF, stray. */
const NOT_UTF8 = [
  '\x80',
  '\xc3',
  '\xc0\xaf',
  '\xe2\x82',
  '\xed\xa0\x80',
  '\xf0\x9f\x98',
  '\xf4\x90\x80\x80',
  '\xff',
  '\xe0\x80\xaf',
];

const LONE = ['\\ud800', '\\udfff', '\\ud83d\\ud83d', '\\udc00\\ud800', '\\uD83Dx', '\\ud83d\\n'];

/** Text of a number that a double rounds to another decimal value. */
function inexact(random: Random): string {
  const digits = `${random.whole(1, 9)}${Array.from({ length: random.whole(19, 40) }, () => random.whole(0, 9)).join('')}1`;
  return random.pick(
    `0.${digits}`,
    `${digits}.5`,
    `-1.${digits}`,
    '0.1000000000000000055',
    '1e400',
    '-1e400',
    '1e-400',
    `${digits}e-3`,
  );
}

const SYNTAX = [
  '',
  'nul',
  'True',
  'NaN',
  'Infinity',
  '-',
  '+1',
  '01',
  '1.',
  '.5',
  '1e',
  '0x10',
  "'a'",
  '"a',
  '"\\x41"',
  '"\\u12"',
  '[1,]',
  '[1 2]',
  '{"a" 1}',
  '{"a":1,}',
  '{a:1}',
  '{1:1}',
  '/**/1',
  '1 2',
  '[}',
  '{"a":}',
  '"\t"',
  '"\u0001"',
  '\u00a01',
  '\ufeff1',
];

export const BAD_BYTES: readonly Variant[] = [
  inValue('bytes that are not UTF-8', (random) => latin1(`"${random.word()}${random.pick(...NOT_UTF8)}"`)),
  inValue('bytes that are not UTF-8 in a member name', (random) => latin1(`{"${random.pick(...NOT_UTF8)}":1}`)),
  inValue(
    'a member twice',
    (random) => {
      const name = random.pick(random.word(), '__proto__', '', 'é', '\u{1F600}');
      return `{${JSON.stringify(name)}:1,"other":2,${JSON.stringify(name)}:${random.pick('1', '2', 'null')}}`;
    },
    null,
  ),
  inValue('a member twice, once by an escape', () => '{"ab":1,"\\u0061b":1}', '/ab'),
  inValue('a member twice, deep inside', () => '[{"k":{"twin":1,"t\\u0077in":2}}]', '/0/k/twin'),
  inValue('a lone surrogate', (random) => `"${random.word()}${random.pick(...LONE)}"`),
  inValue('a lone surrogate in a member name', (random) => `{"${random.pick(...LONE)}":1}`),
  inValue('U+0000', (random) => `"${random.pick('', random.word())}\\u0000"`),
  inValue('U+0000 in a member name', () => '{"\\u0000":1}'),
  inValue('U+0000 as a byte', () => '"\u0000"'),
  inValue(
    'an integer beyond 2^53-1',
    (random) =>
      `${random.pick('', '-')}${random.pick('9007199254740992', '9007199254740993', '18446744073709551616', `9${'0'.repeat(random.whole(16, 400))}`)}`,
  ),
  inValue('a number that would become another', inexact),
  inValue('a syntax error', (random) => random.pick(...SYNTAX), null),
  inValue(
    'more than 64 levels',
    (random) => {
      const levels = random.whole(64, 400);
      return random.pick(
        `${'['.repeat(levels)}${']'.repeat(levels)}`,
        `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`,
      );
    },
    null,
  ),
  inValue('brackets without end', (random) => random.pick('[', '{"a":').repeat(random.whole(10_000, 40_000)), null),
  malformed('200,000 brackets in a batch', (random, scene) =>
    jsonRequest(scene, { path: '/v1/decisions/batch' }, `{"decisions":${random.pick('[', '{"":').repeat(200_000)}`),
  ),
  ofBody('a byte order mark', (sound, random) =>
    random.pick<Buffer | string>(
      `\ufeff${sound}`,
      Buffer.from(`\ufeff${sound}`, 'utf16le'),
      Buffer.from(sound, 'utf16le'),
    ),
  ),
  ofBody('a body that breaks off', (sound, random) => sound.slice(0, random.whole(1, sound.length - 1))),
  ofBody(
    'bytes behind the end',
    (sound, random) => sound + random.pick('x', '}', ',', '{}', 'null', '\u0000', '\f', '\u00a0'),
  ),
  ofBody('no body at all', () => ''),
  ofBody('white space alone', (_sound, random) => random.pick(' ', '\n', '\t\r\n').repeat(random.whole(1, 50))),
  ofBody('noise', (_sound, random) =>
    Buffer.from(
      Array.from({ length: random.whole(1, 400) }, () => random.pick(random.whole(0x80, 0xff), random.whole(1, 0x1f))),
    ),
  ),
];
