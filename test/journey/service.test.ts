import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Client, inputs, type Reply, type Service } from '../support/index.js';
import { freePort, proxyTo, type Proxy } from '../support/proxy.js';
import { setStage, TRANSACTIONAL, until, type Stage } from '../support/stage.js';

let stage: Stage;
beforeAll(async () => {
  stage = await setStage({ actions: { 'note.add': TRANSACTIONAL, 'refund.create': TRANSACTIONAL } });
});
afterAll(() => stage?.clear());

const anyone = (service: Service = stage.service): Client => new Client(service.url);

describe('what it says of itself', () => {
  test('healthz and readyz are 200', async () => {
    expect((await anyone().get('/healthz')).status).toBe(200);
    expect((await anyone().get('/readyz')).status).toBe(200);
  });

  test('metrics are in Prometheus’ form', async () => {
    await stage.orchestrator.decide({ inputs: inputs() });
    const { status, headers, text } = await anyone().get('/metrics');
    expect([status, headers.get('content-type')]).toEqual([200, expect.stringMatching(/^text\/plain/)]);
    expect(text).toMatch(/^# TYPE \w+ (counter|gauge|histogram)$/m);
    for (const line of text.split('\n').filter((one) => one !== '' && !one.startsWith('#')))
      expect(line).toMatch(/^[a-zA-Z_:][\w:]*(\{.*\})? (-?[\d.e+-]+|NaN|[+-]Inf)$/);
  });

  test('openapi.json is 3.1 and has every route', async () => {
    const { status, body } = await anyone().get('/openapi.json');
    expect([status, body.openapi]).toEqual([200, expect.stringMatching(/^3\.1\.\d+$/)]);
    const routes = Object.entries(body.paths).flatMap(([path, methods]) =>
      Object.keys(methods as object).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(routes).toEqual(
      expect.arrayContaining([
        ...['POST /v1/tenants', 'POST /v1/credentials', 'GET /v1/credentials', 'DELETE /v1/credentials/{credentialId}'],
        ...['PUT /v1/actions/{action}', 'GET /v1/actions', 'GET /v1/actions/{action}'],
        ...['POST /v1/decisions', 'POST /v1/decisions/batch', 'GET /v1/decisions', 'GET /v1/decisions/{decisionId}'],
        ...['GET /v1/idempotency-records/{key}', 'GET /healthz', 'GET /readyz', 'GET /metrics'],
      ]),
    );
  });

  test('docs is a page for a browser', async () => {
    const { status, headers, text } = await anyone().get('/docs');
    expect([status, headers.get('content-type')]).toEqual([200, expect.stringMatching(/^text\/html/)]);
    expect(text).toContain('swagger-ui');
  });

  test('with METRICS_PORT the metrics are there and no longer beside the API', async () => {
    const port = await freePort();
    const service = await stage.addService({ METRICS_PORT: String(port) });
    const own = await fetch(`http://127.0.0.1:${port}/metrics`);
    expect([own.status, await own.text()]).toEqual([200, expect.stringContaining('# TYPE ')]);
    const beside = await anyone(service).get('/metrics');
    expect([beside.status, beside.body.code]).toEqual([404, 'not-found']);
    await service.stop();
  });
});

describe('without its database', () => {
  let proxy: Proxy;
  let service: Service;
  beforeAll(async () => {
    proxy = await proxyTo(stage.database.url);
    service = await stage.addService({ DATABASE_URL: proxy.url });
  });
  afterAll(async () => {
    await service?.kill();
    proxy?.close();
  });

  test('it lives, is not ready, answers 503, keeps nothing, and runs the retry when the database is back', async () => {
    const orchestrator = new Client(service.url, stage.tokens.orchestrator);
    const asked = { inputs: inputs({ subject: { type: 'case', id: 'gone' } }) };
    const listed = await orchestrator.get('/v1/decisions');
    const before = await stage.tally();
    proxy.cut();
    const [alive, ready] = [await anyone(service).get('/healthz'), await anyone(service).get('/readyz')];
    expect([alive.status, ready.status, ready.body.code, ready.body.retryable]).toEqual([
      200,
      503,
      'unavailable',
      true,
    ]);
    const lost: Reply[] = [
      await orchestrator.decide(asked, 'gone'),
      await orchestrator.decide({ inputs: inputs({ action: 'refund.create' }) }, 'gone-too'),
      await orchestrator.get('/v1/decisions'),
    ];
    for (const reply of lost)
      expect([reply.status, reply.body.code, reply.body.retryable]).toEqual([503, 'unavailable', true]);
    expect(await stage.tally()).toEqual(before);
    proxy.mend();
    expect(
      (
        await until(
          () => anyone(service).get('/readyz'),
          ({ status }) => status === 200,
        )
      ).status,
    ).toBe(200);
    const retried = await orchestrator.decide(asked, 'gone');
    expect([listed.status, retried.status, retried.headers.get('idempotent-replayed')]).toEqual([200, 201, null]);
  });

  test('a batch answers each of its items with 503', async () => {
    const orchestrator = new Client(service.url, stage.tokens.orchestrator);
    const decisions = ['x', 'y'].map((id) => ({ inputs: inputs({ subject: { type: 'batch', id } }) }));
    await orchestrator.get('/v1/decisions');
    proxy.cut();
    const reply = await orchestrator.post('/v1/decisions/batch', { decisions });
    proxy.mend();
    const told = reply.status === 200 ? reply.body.items : [reply];
    for (const one of told) expect([one.status, one.body.code]).toEqual([503, 'unavailable']);
    await until(
      () => anyone(service).get('/readyz'),
      ({ status }) => status === 200,
    );
    const retried = await orchestrator.post('/v1/decisions/batch', { decisions });
    expect(retried.body.items.map((one: Reply) => one.status)).toEqual([201, 201]);
  });
});
