import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Client, type Reply } from '../support/index.js';
import { everyRow, request, setDispatchStage, type DispatchStage } from '../support/dispatching.js';
import type { Step } from '../support/provider.js';
import { until } from '../support/stage.js';

const SECRET = 'sk_live_4f"9\\Zx-very-secret';
const OTHER_SECRET = 'Basic dXNlcjpwYXNzd29yZA';

let stage: DispatchStage;
beforeAll(async () => {
  stage = await setDispatchStage({
    LOG_LEVEL: 'debug',
    SWEEP_INTERVAL_SECONDS: '1',
    PAYMENTS_TOKEN: `Bearer ${SECRET}`,
    OTHER_TOKEN: OTHER_SECRET,
  });
  await stage.act('refund.pay', { timeoutMs: 800 });
});
afterAll(() => stage?.clear());

const WAIT = { prefer: 'wait=20' };
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

const keyOf = (name: string): string => name.replaceAll(' ', '-');

async function resultOf(name: string, step: Step): Promise<unknown> {
  const reply = await stage.decide(keyOf(name), 'refund.pay', [step], WAIT);
  expect([reply.status, reply.body.outcome?.status]).toEqual([201, 'applied']);
  return reply.body.outcome.result;
}

describe('the result of a 2xx', () => {
  test.each<[string, Step, unknown]>([
    ['is its JSON', { status: 201, text: '{"b": 1.50, "a": [null]}' }, { a: [null], b: 1.5 }],
    ['may be any JSON value', { text: '"re_1"' }, 're_1'],
    [
      'may be of a JSON media type',
      { headers: { 'content-type': 'application/vnd.pay+json;charset=utf-8' }, text: '[]' },
      [],
    ],
  ])('%s', async (name, step, result) => {
    expect(await resultOf(name, step)).toEqual(result);
  });

  test.each<[string, Step, string]>([
    ['is no JSON', { headers: { 'content-type': 'text/plain' }, text: 'done' }, 'done'],
    ['only says that it is JSON', { text: 'done' }, 'done'],
    ['can be read in two ways', { text: '{"a":1,"a":2}' }, '{"a":1,"a":2}'],
    ['has a number that would change', { text: '{"id":12345678901234567890}' }, '{"id":12345678901234567890}'],
    ['is empty', { status: 204, text: '' }, ''],
    ['is larger than 64 KiB', { bytes: 65_537 }, 'x'.repeat(65_537)],
    ['is large', { bytes: 3_000_000 }, 'x'.repeat(3_000_000)],
  ])('that %s is what identifies it', async (name, step, body) => {
    const contentType = step.headers?.['content-type'] ?? 'application/json';
    expect(await resultOf(name, step)).toEqual({
      status: step.status ?? 200,
      contentType,
      bytes: body.length,
      sha256: sha256(body),
    });
  });

  test.each<[string, Step]>([
    ['never ends', { endless: true }],
    ['breaks off', { breakOff: true }],
    ['is larger than anybody would read', { bytes: 20_000_000 }],
  ])('whose answer %s is applied all the same, and says that it is cut', async (name, step) => {
    const result = await resultOf(name, step);
    expect(result).toMatchObject({
      status: 200,
      truncated: true,
      bytes: expect.any(Number),
      sha256: expect.any(String),
    });
    expect((result as { bytes: number }).bytes).toBeLessThanOrEqual(16 * 1024 * 1024);
    expect(stage.provider.effects(keyOf(name))).toBe(1);
  });
});

test('a redirect is not followed', async () => {
  let visits = 0;
  const elsewhere = createServer((_request, response) => {
    visits += 1;
    response.end();
  });
  await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve));
  const address = elsewhere.address();
  const port = typeof address === 'object' ? address?.port : 0;
  for (const status of [301, 302, 303, 307, 308]) {
    const step = { status, headers: { location: `http://127.0.0.1:${port}/` } };
    const reply = await stage.decide(`redirect-${status}`, 'refund.pay', [step, {}], WAIT);
    expect(reply.status).toBe(201);
    expect(stage.provider.arrivals(`redirect-${status}`)).toHaveLength(2);
  }
  expect(visits).toBe(0);
  elsewhere.close();
});

test('secrets are sent, and stand in no answer, no log line and no row, even if the provider repeats them', async () => {
  await stage.act('refund.secret', {
    secretHeaders: { Authorization: 'env:PAYMENTS_TOKEN', 'X-Other': 'env:OTHER_TOKEN' },
  });
  const echoed = await stage.decide('echo', 'refund.secret', [{ echo: true }], WAIT);
  const refused = await stage.decide('echo-422', 'refund.secret', [{ echo: true, status: 422 }], WAIT);
  const typed = await stage.decide(
    'echo-type',
    'refund.secret',
    [{ headers: { 'content-type': 'text/plain; was=$x-other' }, text: 'ok' }],
    WAIT,
  );
  const [arrival] = stage.provider.arrivals('echo');
  expect(arrival?.headers).toMatchObject({ authorization: `Bearer ${SECRET}`, 'x-other': OTHER_SECRET });
  expect(echoed.body.outcome.result).toEqual({
    status: 200,
    contentType: 'application/json',
    bytes: expect.any(Number),
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  expect([refused.status, typed.body.outcome.result.contentType]).toEqual([409, null]);

  const { text: actions } = await stage.admin.get('/v1/actions');
  expect(actions).toContain('env:PAYMENTS_TOKEN');
  const { text: metrics } = await stage.admin.get('/metrics');
  const everything = [
    echoed.text,
    refused.text,
    typed.text,
    actions,
    metrics,
    stage.service.output(),
    await everyRow(stage),
  ].join('\n');
  for (const secret of [SECRET, JSON.stringify(SECRET).slice(1, -1), OTHER_SECRET, OTHER_SECRET.slice(6)])
    expect(everything.includes(secret)).toBe(false);
});

test('each try leaves one line that names the host, and neither the whole key nor the query', async () => {
  await stage.act('refund.query', { url: stage.provider.url('/pay?token=in-the-query') });
  await stage.decide('a-key-that-is-long-enough', 'refund.query', [{ status: 503 }, {}], WAIT);
  const lines = stage.service
    .output()
    .split('\n')
    .filter((line) => line.includes('"event":"dispatch"') && line.includes('refund.query'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines).toHaveLength(2);
  expect(lines[0]).toMatchObject({
    host: stage.provider.host,
    try: 1,
    status: 503,
    state: 'in_flight',
    key: 'a-key-that-i',
  });
  expect(lines[1]).toMatchObject({ try: 2, status: 200, state: 'completed', latencyMs: expect.any(Number) });
  expect(JSON.stringify(lines)).not.toMatch(/in-the-query|long-enough/);
});

test('what is unfinished is a metric', async () => {
  await stage.act('refund.once', { maxAttempts: 1 });
  await stage.decide('m-1', 'refund.once', [{ status: 500 }], WAIT);
  await stage.decide('m-2', 'refund.pay', [{ status: 429, headers: { 'retry-after': '600' } }]);
  const read = async (name: string): Promise<number> => {
    const { text } = await stage.admin.get('/metrics');
    return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
  };
  expect(
    await until(
      () => read('decisions_unknown'),
      (unknown) => unknown === 1,
    ),
  ).toBe(1);
  const age = await until(
    () => read('decisions_in_flight_oldest_seconds'),
    (seconds) => seconds > 1,
  );
  expect(age).toBeLessThan(60);
});

test('a host that is no longer allowed, or a secret that is gone, is not called: surely nothing happened', async () => {
  await stage.act('refund.barred', { maxAttempts: 2 });
  await stage.act('refund.gone', {
    maxAttempts: 2,
    url: stage.provider.url('/gone'),
    secretHeaders: { 'X-Other': 'env:OTHER_TOKEN' },
  });
  await stage.service.stop();
  const api = new Client((await stage.addService({ WORKER: 'off' })).url, stage.tokens.orchestrator);
  const decide = (key: string, action: string): Promise<Reply> =>
    api.post('/v1/decisions', request(key, action), { 'idempotency-key': key, ...WAIT });

  const poorer = await stage.addService({ WORKER: 'only', OTHER_TOKEN: '' });
  expect((await decide('gone', 'refund.gone')).body.state).toBe('failed');
  await poorer.stop();
  await stage.addService({ WORKER: 'only', DISPATCH_ALLOWED_HOSTS: 'localhost, 10.0.0.1' });
  expect((await decide('barred', 'refund.barred')).body.state).toBe('failed');
  expect([...stage.provider.arrivals('gone'), ...stage.provider.arrivals('barred')]).toEqual([]);
});
