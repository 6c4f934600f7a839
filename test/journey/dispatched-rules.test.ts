import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Reply } from '../support/index.js';
import { setStage, type Stage } from '../support/stage.js';

let stage: Stage;
beforeAll(async () => {
  stage = await setStage({
    env: {
      DISPATCH_ALLOWED_HOSTS: 'Pay.Example, other.example:8443,[::1]:9000, 127.0.0.1',
      PAYMENTS_TOKEN: 'Bearer sk_live_1',
      EMPTY_TOKEN: '  ',
      PGPASSWORD: 'of the database',
      WORKER: 'off',
    },
  });
});
afterAll(() => stage?.clear());

const URL_OF_PAY = 'https://pay.example/v1/refunds';

let names = 0;
function put(rules: Readonly<Record<string, unknown>>): Promise<Reply> {
  names += 1;
  return stage.admin.put(`/v1/actions/pay.n${names}`, rules);
}
const putDispatch = (dispatch: Readonly<Record<string, unknown>>): Promise<Reply> =>
  put({ execution: 'dispatched', dispatch: { url: URL_OF_PAY, ...dispatch } });

describe('the rules of a dispatched action', () => {
  test('are answered with the defaults filled in, and an identical PUT makes no version', async () => {
    const rules = { execution: 'dispatched', dispatch: { url: URL_OF_PAY } };
    const first = await stage.admin.put('/v1/actions/pay.defaults', rules);
    expect(first.status).toBe(201);
    expect(first.body).toMatchObject({
      execution: 'dispatched',
      onExpiredLease: 'reclaim',
      leaseSeconds: 30,
      version: 1,
      dispatch: {
        url: URL_OF_PAY,
        method: 'POST',
        keyHeader: 'Idempotency-Key',
        keyForm: 'key',
        timeoutMs: 10_000,
        maxAttempts: 5,
        idempotencyWindowSeconds: 86_400,
        secretHeaders: {},
      },
    });
    const again = await stage.admin.put('/v1/actions/pay.defaults', {
      ...rules,
      dispatch: { ...rules.dispatch, maxAttempts: 5 },
    });
    expect([again.status, again.text]).toEqual([200, first.text]);
    expect((await stage.orchestrator.get('/v1/actions/pay.defaults')).text).toBe(first.text);
  });

  test('are taken as they are given', async () => {
    const dispatch = {
      url: 'https://other.example:8443/x?y=1',
      method: 'POST',
      keyHeader: 'X-Request-Id',
      keyForm: 'uuid4',
      timeoutMs: 100,
      maxAttempts: 50,
      idempotencyWindowSeconds: 2_592_000,
      secretHeaders: { Authorization: 'env:PAYMENTS_TOKEN' },
    };
    const reply = await put({ execution: 'dispatched', onExpiredLease: 'unknown', dispatch });
    expect([reply.status, reply.body.dispatch, reply.body.onExpiredLease]).toEqual([201, dispatch, 'unknown']);
  });

  test.each<[string, Readonly<Record<string, unknown>>, string]>([
    ['no dispatch', { execution: 'dispatched' }, '/dispatch'],
    ['dispatch with caller', { execution: 'caller', dispatch: { url: URL_OF_PAY } }, '/dispatch'],
    ['dispatch with transactional', { execution: 'transactional', dispatch: { url: URL_OF_PAY } }, '/dispatch'],
    ['onExpiredLease with transactional', { execution: 'transactional', onExpiredLease: 'reclaim' }, '/onExpiredLease'],
    ['a dispatch that is no object', { execution: 'dispatched', dispatch: URL_OF_PAY }, '/dispatch'],
    ['no url', { execution: 'dispatched', dispatch: {} }, '/dispatch/url'],
  ])('%s is 400', async (_name, rules, pointer) => {
    const reply = await put(rules);
    expect([reply.status, reply.body.code, reply.body.errors[0].pointer]).toEqual([400, 'validation-failed', pointer]);
  });

  test.each<[string, unknown, string]>([
    ['url', 'pay.example/x', '/dispatch/url'],
    ['url', '/x', '/dispatch/url'],
    ['url', 'ftp://pay.example/x', '/dispatch/url'],
    ['url', 'file:///etc/passwd', '/dispatch/url'],
    ['url', 'https://user:pw@pay.example/x', '/dispatch/url'],
    ['url', 'https://user@pay.example/x', '/dispatch/url'],
    ['url', `${URL_OF_PAY}#part`, '/dispatch/url'],
    ['url', `${URL_OF_PAY}#`, '/dispatch/url'],
    ['url', `${URL_OF_PAY}?${'x'.repeat(2048)}`, '/dispatch/url'],
    ['method', 'PUT', '/dispatch/method'],
    ['keyHeader', 'Bad Header', '/dispatch/keyHeader'],
    ['keyHeader', 'X:Y', '/dispatch/keyHeader'],
    ['keyHeader', 'Host', '/dispatch/keyHeader'],
    ['keyHeader', 'content-length', '/dispatch/keyHeader'],
    ['keyHeader', 'Transfer-Encoding', '/dispatch/keyHeader'],
    ['keyHeader', 'Connection', '/dispatch/keyHeader'],
    ['keyHeader', 'Content-Type', '/dispatch/keyHeader'],
    ['keyForm', 'hex', '/dispatch/keyForm'],
    ['timeoutMs', 99, '/dispatch/timeoutMs'],
    ['timeoutMs', 60_001, '/dispatch/timeoutMs'],
    ['maxAttempts', 0, '/dispatch/maxAttempts'],
    ['maxAttempts', 51, '/dispatch/maxAttempts'],
    ['idempotencyWindowSeconds', 0, '/dispatch/idempotencyWindowSeconds'],
    ['idempotencyWindowSeconds', 2_592_001, '/dispatch/idempotencyWindowSeconds'],
    ['colour', 'red', '/dispatch/colour'],
    ['secretHeaders', { Authorization: 'sk_live_1' }, '/dispatch/secretHeaders/Authorization'],
    ['secretHeaders', { Authorization: 'env:' }, '/dispatch/secretHeaders/Authorization'],
    ['secretHeaders', { Authorization: 'env:A B' }, '/dispatch/secretHeaders/Authorization'],
    ['secretHeaders', { Authorization: 'ENV:A' }, '/dispatch/secretHeaders/Authorization'],
    ['secretHeaders', { Authorization: 7 }, '/dispatch/secretHeaders/Authorization'],
    ['secretHeaders', { Host: 'env:PAYMENTS_TOKEN' }, '/dispatch/secretHeaders/Host'],
    ['secretHeaders', { 'a/b~': 'env:PAYMENTS_TOKEN' }, '/dispatch/secretHeaders/a~1b~0'],
    ['secretHeaders', { 'idempotency-key': 'env:PAYMENTS_TOKEN' }, '/dispatch/secretHeaders/idempotency-key'],
    ['secretHeaders', { A: 'env:PAYMENTS_TOKEN', a: 'env:PAYMENTS_TOKEN' }, '/dispatch/secretHeaders/a'],
    ['secretHeaders', 'env:PAYMENTS_TOKEN', '/dispatch/secretHeaders'],
  ])('%s %j is 400', async (name, value, pointer) => {
    const reply = await putDispatch({ [name]: value });
    expect([reply.status, reply.body.code, reply.body.errors[0].pointer]).toEqual([400, 'validation-failed', pointer]);
    expect(reply.text).not.toContain('sk_live_1');
  });

  test.each([
    'https://PAY.example:444/x',
    'http://other.example:8443',
    'http://127.0.0.1:1/',
    'http://0x7f.1/',
    'http://[::1]:9000/',
  ])('the host of %s is allowed', async (url) => {
    expect((await putDispatch({ url })).status).toBe(201);
  });

  test.each([
    'https://evil.example/',
    'https://other.example/',
    'https://other.example:8444/',
    'https://sub.pay.example/',
    'https://pay.example.evil.example/',
    'http://localhost/',
    'http://127.0.0.2/',
    'http://169.254.169.254/latest/meta-data/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.1]/',
  ])('the host of %s is not', async (url) => {
    const reply = await putDispatch({ url });
    expect([reply.status, reply.body.code, reply.body.retryable]).toEqual([422, 'host-not-allowed', false]);
  });

  test.each(['NOT_SET', 'EMPTY_TOKEN', 'DATABASE_URL', 'DATABASE_OWNER_URL', 'DATA_DIR', 'PGPASSWORD'])(
    'a secret from %s is unknown',
    async (name) => {
      const reply = await putDispatch({ secretHeaders: { 'X-A': `env:${name}` } });
      expect([reply.status, reply.body.code, reply.body.retryable]).toEqual([422, 'unknown-secret', false]);
      expect(reply.text).not.toContain('postgres://');
    },
  );

  test('an action that was refused is not in the inventory', async () => {
    await stage.admin.put('/v1/actions/pay.refused', {
      execution: 'dispatched',
      dispatch: { url: 'https://evil.example' },
    });
    expect((await stage.admin.get('/v1/actions/pay.refused')).status).toBe(404);
  });
});
