import { connect } from 'node:net';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { inputs, type Reply } from '../support/index.js';
import { setStage, type Stage } from '../support/stage.js';

const BODY_BYTES = 256 * 1024;

let stage: Stage;
beforeAll(async () => {
  stage = await setStage();
});
afterAll(() => stage?.clear());

let ordinal = 0;
const fresh = (changes: Record<string, unknown> = {}): Record<string, unknown> =>
  inputs({ subject: { type: 'case', id: `b-${(ordinal += 1)}` }, ...changes });
const withParams = (params: string): string =>
  JSON.stringify({ inputs: fresh({ params: 'P' }) }).replace('"P"', params);
const pointersOf = ({ body }: Reply): string[] => body.errors.map((one: { pointer: string }) => one.pointer);

describe('bytes that are not strict JSON: 400 malformed-request with the place', () => {
  const at = '/inputs/params';
  const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
  const CASES: readonly (readonly [string, () => string | Buffer, string])[] = [
    ['nothing', () => Buffer.alloc(0), ''],
    ['white space', () => '  ', ''],
    ['an open object', () => '{', ''],
    ['a second text', () => `${withParams('{}')}{}`, ''],
    ['a byte order mark', () => `\ufeff${withParams('{}')}`, ''],
    ['bytes that are not UTF-8', () => Buffer.from(withParams('{"a":"\u00ff"}'), 'latin1'), `${at}/a`],
    ['a trailing comma', () => withParams('{"a":[1,]}'), `${at}/a/1`],
    ['a comment', () => withParams('{"a":/**/1}'), `${at}/a`],
    ['single quotes', () => withParams(`{"a":'b'}`), `${at}/a`],
    ['NaN', () => withParams('{"a":NaN}'), `${at}/a`],
    ['a leading point', () => withParams('{"a":.5}'), `${at}/a`],
    ['a leading plus', () => withParams('{"a":+1}'), `${at}/a`],
    ['a control character in text', () => withParams('{"a":"\n"}'), `${at}/a`],
    ['an unknown escape', () => withParams('{"a":"\\x41"}'), `${at}/a`],
    ['a name given twice', () => withParams('{"a":1,"b":2,"a":1}'), `${at}/a`],
    ['a name given twice, once escaped', () => withParams('{"a":1,"\\u0061":1}'), `${at}/a`],
    ['a name given twice in a list', () => withParams('{"l":[{},{"x/y":1,"x/y":2}]}'), `${at}/l/1/x~1y`],
    ['a lone surrogate', () => withParams('{"a":"\\ud800"}'), `${at}/a`],
    ['surrogates the wrong way round', () => withParams('{"a":"\\udc00\\ud800"}'), `${at}/a`],
    ['U+0000 in text', () => withParams('{"a":"b\\u0000"}'), `${at}/a`],
    ['2^53', () => withParams('{"a":9007199254740992}'), `${at}/a`],
    ['-2^53', () => withParams('{"a":[0,-9007199254740992]}'), `${at}/a/1`],
    ['twenty digits', () => withParams('{"a":12345678901234567890}'), `${at}/a`],
    ['2^53+1 with a fraction', () => withParams('{"a":9007199254740993.0}'), `${at}/a`],
    ['more digits than a double has', () => withParams('{"a":0.1000000000000000055511151231257827}'), `${at}/a`],
    ['an amount that would lose its cents', () => withParams('{"a":12345678901234567.89}'), `${at}/a`],
    ['a number that would be infinite', () => withParams('{"a":1e400}'), `${at}/a`],
    ['a number that would be zero', () => withParams('{"a":1e-400}'), `${at}/a`],
    ['65 arrays and objects in one another', () => withParams(`{"a":${deep(62)}}`), `${at}/a${'/0'.repeat(61)}`],
  ];
  test.each(CASES)('%s', async (_name, build, pointer) => {
    const before = await stage.tally();
    const reply = await stage.orchestrator.decide(build());
    expect([reply.status, reply.body.code]).toEqual([400, 'malformed-request']);
    expect(pointersOf(reply)).toEqual([pointer]);
    expect(await stage.tally()).toEqual(before);
  });

  test.each([
    ['±(2^53−1)', '{"a":[9007199254740991,-9007199254740991]}'],
    ['decimals that a double holds', '{"a":[0.1,1.10,1e3,12.5E-2,0.30000000000000004]}'],
    ['the ends of the doubles', '{"a":[1.7976931348623157e308,5e-324]}'],
    ['a pair of surrogates', '{"a":"\\ud83d\\ude00"}'],
    ['names that mean something elsewhere', '{"__proto__":1,"toString":2,"":3}'],
    ['64 arrays and objects in one another', `{"a":${deep(61)}}`],
  ])('taken: %s', async (_name, params) => {
    expect((await stage.orchestrator.decide(withParams(params))).status).toBe(201);
  });
});

describe('size and media type', () => {
  /** Sends a body in chunks, without saying how long it will be. */
  async function sendChunked(body: string): Promise<string> {
    const { hostname, port, host } = new URL(stage.service.url);
    const socket = connect(Number(port), hostname);
    let answer = '';
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1'))).on('error', () => undefined);
    socket.write(
      `POST /v1/decisions HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\nAuthorization: Bearer ${stage.tokens.orchestrator}\r\n` +
        `Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
    );
    for (let from = 0; from < body.length; from += 65_536) {
      const part = body.slice(from, from + 65_536);
      socket.write(`${part.length.toString(16)}\r\n${part}\r\n`);
    }
    socket.write('0\r\n\r\n');
    await once(socket, 'close');
    return answer;
  }

  test('256 KiB are taken, one byte more is 413; in chunks as well', async () => {
    const text = withParams('{}');
    expect((await stage.orchestrator.decide(text.padEnd(BODY_BYTES))).status).toBe(201);
    const over = await stage.orchestrator.decide(text.padEnd(BODY_BYTES + 1));
    expect([over.status, over.body.code]).toEqual([413, 'too-large']);
    expect(await sendChunked(text.padEnd(BODY_BYTES))).toMatch(/^HTTP\/1\.1 201/);
    expect(await sendChunked(text.padEnd(BODY_BYTES + 1))).toMatch(/^HTTP\/1\.1 413/);
  });

  test.each(['application/json', 'application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"'])(
    '%s is taken',
    async (type) => {
      expect((await stage.orchestrator.post('/v1/decisions', withParams('{}'), { 'content-type': type })).status).toBe(
        201,
      );
    },
  );

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonx',
    'text/json',
  ])('%s is 415', async (type) => {
    const reply = await stage.orchestrator.post('/v1/decisions', withParams('{}'), { 'content-type': type });
    expect([reply.status, reply.body.code]).toEqual([415, 'unsupported-media-type']);
  });
});

describe('fields', () => {
  const TEXTS = ['subject.type', 'subject.id', 'model.id', 'model.version', 'retrievalSnapshotId', 'policyVersion'];
  /** The body of a decision with one member, named by its path below the body, set to a value or left out. */
  function bodyWith(path: string, value: unknown): Record<string, unknown> {
    const body: any = { inputs: fresh(), note: 'n', evidence: { stepId: 's' } }; // eslint-disable-line -- built by path
    const names = path.split('.');
    const last = names.pop() ?? '';
    const holder = names.reduce((inner, name) => inner[name], body);
    if (value === undefined) delete holder[last];
    else holder[last] = value;
    return structuredClone(body);
  }
  const pointerOf = (path: string): string => `/${path.replaceAll('.', '/')}`;

  const REQUIRED = ['inputs', 'inputs.subject', 'inputs.action', 'inputs.params', 'inputs.model']
    .concat(TEXTS.map((name) => `inputs.${name}`))
    .concat(['inputs.promptTemplateSha256']);
  test.each(REQUIRED)('%s is required', async (path) => {
    const reply = await stage.orchestrator.decide(bodyWith(path, undefined));
    expect([reply.status, reply.body.code, pointersOf(reply)]).toEqual([400, 'validation-failed', [pointerOf(path)]]);
  });

  test.each([
    'surplus',
    'inputs.surplus',
    'inputs.subject.surplus',
    'inputs.model.surplus',
    'evidence.surplus',
    'idempotencyKey',
  ])('%s is no member', async (path) => {
    const reply = await stage.orchestrator.decide(bodyWith(path, 1));
    expect([reply.status, reply.body.code, pointersOf(reply)]).toEqual([400, 'validation-failed', [pointerOf(path)]]);
  });

  const LONG: readonly (readonly [string, number])[] = [
    ...TEXTS.map((name) => [`inputs.${name}`, 255] as const),
    ['note', 4_000],
    ['evidence.rationale', 4_000],
    ['evidence.stepId', 255],
    ['evidence.runId', 255],
    ['evidence.toolCallId', 255],
    ['evidence.traceparent', 255],
  ];
  test.each(LONG)('%s is text of 1 to %i code points, taken as it is sent', async (path, most) => {
    for (const text of ['x'.repeat(most), '😀'.repeat(most), ' ', ' \u0301é\u200b '])
      expect((await stage.orchestrator.decide(bodyWith(path, text))).status).toBe(201);
    for (const bad of ['', 'x'.repeat(most + 1), '😀'.repeat(most + 1), 7, null, ['x'], { x: 1 }, true]) {
      const reply = await stage.orchestrator.decide(bodyWith(path, bad));
      expect([reply.status, reply.body.code, pointersOf(reply)]).toEqual([400, 'validation-failed', [pointerOf(path)]]);
    }
  });

  test.each([
    ['inputs', [null, [], 'x', 1]],
    ['inputs.subject', [null, [], 'case', 1]],
    ['inputs.model', [null, [], 'm-1', 1]],
    ['inputs.params', [null, [], '{}', 1, true]],
    ['inputs.action', [null, 1, '', ['note.add']]],
    [
      'inputs.promptTemplateSha256',
      [null, 1, '', 'a'.repeat(63), 'a'.repeat(65), 'A'.repeat(64), 'g'.repeat(64), `${'a'.repeat(64)}\n`],
    ],
    ['evidence', [null, [], 'x', 1]],
    ['evidence.attempt', [null, '1', 1.5, true]],
  ])('%s of another kind', async (path, values) => {
    for (const value of values) {
      const reply = await stage.orchestrator.decide(bodyWith(path, value));
      expect([value, reply.status, reply.body.code]).toEqual([value, 400, 'validation-failed']);
      expect(pointersOf(reply)).toContain(pointerOf(path));
    }
  });

  test.each([['[]'], ['null'], ['"x"'], ['1']])('the body %s is no request', async (body) => {
    const reply = await stage.orchestrator.decide(body);
    expect([reply.status, reply.body.code, pointersOf(reply)]).toEqual([400, 'validation-failed', ['']]);
  });
});
