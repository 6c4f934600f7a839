import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { inputs } from '../support/index.js';
import { rowCounts } from '../support/row-counts.js';
import { setStage, type Stage } from '../support/stage.js';
import { exchange, requestBytes, type WireReply } from '../support/wire.js';

let stage: Stage;

beforeAll(async () => {
  // Sealing goes on after the answer, and would change what is counted.
  stage = await setStage({ env: { WORKER: 'off' } });
});

afterAll(async () => {
  await stage?.clear();
});

const sound = (): string => JSON.stringify({ inputs: inputs({ subject: { type: 'framing', id: randomUUID() } }) });
const authorization = (): string => `Authorization: Bearer ${stage.orchestrator.token}`;
const JSON_TYPE = 'Content-Type: application/json';

/** The head of a registration, up to and with the blank line; the length is given by the lines. */
function head(...lines: readonly string[]): string {
  return ['POST /v1/decisions HTTP/1.1', 'Host: localhost', JSON_TYPE, authorization(), ...lines, '', ''].join('\r\n');
}

function expectProblem(reply: WireReply | undefined, status: number): void {
  expect(reply?.status).toBe(status);
  expect(reply?.headers.get('content-type')).toMatch(/^application\/problem\+json/);
  const problem = JSON.parse(reply?.text ?? '');
  expect(problem).toEqual(
    expect.objectContaining({
      status,
      retryable: false,
      code: expect.any(String),
      title: expect.any(String),
      detail: expect.any(String),
    }),
  );
  expect(problem.requestId).toBe(reply?.headers.get('x-request-id'));
}

describe('bytes that are no HTTP request of this service', () => {
  const body = sound();
  test.each([
    ['a length and chunks', () => `${head('Content-Length: 5', 'Transfer-Encoding: chunked')}0\r\n\r\n`],
    ['chunks and a length', () => `${head('Transfer-Encoding: chunked', 'Content-Length: 5')}0\r\n\r\n`],
    ['two lengths that differ', () => `${head(`Content-Length: ${body.length}`, 'Content-Length: 2')}${body}`],
    ['two lengths in one line', () => `${head(`Content-Length: ${body.length}, ${body.length}`)}${body}`],
    ['a length that is no number', () => `${head('Content-Length: abc')}${body}`],
    ['a negative length', () => `${head('Content-Length: -1')}${body}`],
    ['a length with a sign', () => `${head(`Content-Length: +${body.length}`)}${body}`],
    ['a hexadecimal length', () => `${head('Content-Length: 0x10')}${body}`],
    ['chunked twice', () => `${head('Transfer-Encoding: chunked, chunked')}0\r\n\r\n`],
    ['chunked, but not last', () => `${head('Transfer-Encoding: chunked, gzip')}0\r\n\r\n`],
    ['a coding that only looks like chunked', () => `${head('Transfer-Encoding: xchunked')}0\r\n\r\n`],
    ['a chunk size that is none', () => `${head('Transfer-Encoding: chunked')}zz\r\nabc\r\n0\r\n\r\n`],
    ['a chunk longer than it says', () => `${head('Transfer-Encoding: chunked')}2\r\n{}}\r\n0\r\n\r\n`],
    ['a space before the colon', () => `${head('Content-Length : 2')}{}`],
    ['a header without a name', () => `${head(': x', 'Content-Length: 2')}{}`],
    ['a header line that is folded', () => `${head('X-Folded: a\r\n b', 'Content-Length: 2')}{}`],
    ['a bare carriage return in a header', () => `${head('X-Return: a\rb', 'Content-Length: 2')}{}`],
    ['U+0000 in a header', () => `${head('X-Nul: a\u0000b', 'Content-Length: 2')}{}`],
    ['DEL in the key', () => `${head('Idempotency-Key: k\u007f', 'Content-Length: 2')}{}`],
    ['headers of more than 16 KiB', () => `${head(`X-Long: ${'a'.repeat(20_000)}`, 'Content-Length: 2')}{}`],
    ['the preface of HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['a TLS handshake', () => '\u0016\u0003\u0001\u0002\u0000\u0001'],
    ['HTTP of another version', () => 'GET /healthz HTTP/9.9\r\nHost: x\r\n\r\n'],
    ['8-bit bytes in the path', () => 'GET /v1/actions/\u00ff HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['noise', () => 'noise noise noise\r\n\r\n'],
  ])('%s: 400, and the connection ends', async (_name, text) => {
    const before = await rowCounts(stage.database);
    const { replies, ended } = await exchange(stage.service.url, Buffer.from(text(), 'latin1'), {
      want: 0,
      withinMs: 3_000,
    });

    expectProblem(replies[0], 400);
    expect(replies).toHaveLength(1);
    expect(ended).toBe(true);
    expect(await rowCounts(stage.database)).toEqual(before);
  });

  test('a request without a Host: a problem with an id like every other answer', async () => {
    const { replies } = await exchange(stage.service.url, Buffer.from('GET /healthz HTTP/1.1\r\n\r\n'));

    expectProblem(replies[0], 400);
  });

  test('an expectation that nobody can meet: a problem with an id like every other answer', async () => {
    const { replies } = await exchange(
      stage.service.url,
      Buffer.from(`${head('Expect: a-miracle', 'Content-Length: 2')}{}`),
    );

    expect(replies[0]?.status).toBeGreaterThanOrEqual(400);
    expect(replies[0]?.status).toBeLessThan(500);
    expectProblem(replies[0], replies[0]?.status ?? 0);
  });

  test('CONNECT: a problem, or an end of the connection, and no tunnel', async () => {
    const bytes = Buffer.from('CONNECT localhost:1 HTTP/1.1\r\nHost: localhost:1\r\n\r\n');
    const { replies, ended } = await exchange(stage.service.url, bytes, { withinMs: 3_000 });

    expect(ended || (replies[0]?.status ?? 0) >= 400).toBe(true);
  });
});

describe('a body whose length is not what was said', () => {
  test.each([
    ['it stops short and the connection ends', true],
    ['it stops short and the connection stays', false],
  ])('%s: nothing is written, and the next request is served', async (_name, half) => {
    const before = await rowCounts(stage.database);
    const body = sound();
    const bytes = Buffer.from(`${head(`Content-Length: ${body.length + 1}`)}${body}`);
    const { replies } = await exchange(stage.service.url, bytes, { half, withinMs: 700 });

    expect(replies.every(({ status }) => status >= 400 && status < 500)).toBe(true);
    expect(await rowCounts(stage.database)).toEqual(before);
    expect((await stage.orchestrator.get('/healthz')).status).toBe(200);
  });

  test('it is longer than was said: what was said is the body, and the rest is no request', async () => {
    const before = await rowCounts(stage.database);
    const body = sound();
    const { replies } = await exchange(
      stage.service.url,
      Buffer.from(`${head(`Content-Length: ${body.length - 1}`)}${body}`),
      { want: 2, withinMs: 3_000 },
    );

    expectProblem(replies[0], 400);
    expect(await rowCounts(stage.database)).toEqual(before);
  });
});

describe('requests behind one another on one connection', () => {
  test('a decision with garbage behind it gets its own answer first', async () => {
    const body = sound();
    const bytes = Buffer.concat([
      requestBytes('POST', '/v1/decisions', [JSON_TYPE, authorization()], body),
      Buffer.from('GARBAGE\r\n\r\n'),
    ]);
    const { replies } = await exchange(stage.service.url, bytes, { want: 2, withinMs: 3_000 });
    await sleep(500);
    const recorded = await stage.database.count(
      `SELECT count(*) FROM decision_record WHERE subject_id = '${JSON.parse(body).inputs.subject.id}'`,
    );

    // Whoever reads the first answer takes it for the decision's: it must not say that nothing was recorded.
    expect([replies[0]?.status, recorded]).toEqual([201, 1]);
  });

  test('twenty decisions at once are answered in their order', async () => {
    const bodies = Array.from({ length: 20 }, sound);
    const bytes = Buffer.concat(
      bodies.map((body, index) =>
        requestBytes('POST', '/v1/decisions', [JSON_TYPE, authorization(), `X-Request-Id: r${index}`], body),
      ),
    );
    const { replies } = await exchange(stage.service.url, bytes, { want: 20 });

    expect(replies.map(({ status }) => status)).toEqual(bodies.map(() => 201));
    expect(replies.map(({ headers }) => headers.get('x-request-id'))).toEqual(bodies.map((_, index) => `r${index}`));
  });

  test('a bad request in the middle spoils neither neighbour', async () => {
    const lines = [JSON_TYPE, authorization()];
    const bytes = Buffer.concat(
      [sound(), '{"inputs":', sound()].map((body) => requestBytes('POST', '/v1/decisions', lines, body)),
    );
    const { replies } = await exchange(stage.service.url, bytes, { want: 3 });

    expect(replies.map(({ status }) => status)).toEqual([201, 400, 201]);
  });
});

describe('forms of a request that are unusual and sound', () => {
  test('a body in chunks of one byte', async () => {
    const chunks = [...sound()].map((char) => `1\r\n${char}\r\n`).join('');
    const { replies } = await exchange(
      stage.service.url,
      Buffer.from(`${head('Transfer-Encoding: chunked')}${chunks}0\r\n\r\n`),
    );

    expect(replies[0]?.status).toBe(201);
  });

  test('Expect: 100-continue, for a sound body and for a bad one', async () => {
    const sent = [sound(), '{'].map((body) =>
      exchange(
        stage.service.url,
        Buffer.from(`${head('Expect: 100-continue', `Content-Length: ${body.length}`)}${body}`),
      ),
    );
    const answers = await Promise.all(sent);

    expect(answers.map(({ replies }) => replies[0]?.status)).toEqual([201, 400]);
  });
});
