import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readSettings, SettingError } from '#database';
import { inputs, startService } from '../support/index.js';
import { freePort } from '../support/proxy.js';
import { setStage, TRANSACTIONAL, until, type Stage } from '../support/stage.js';
import { startLoneWorker } from '../support/worker.js';

let stage: Stage;
beforeAll(async () => {
  stage = await setStage({
    env: { WORKER: 'off', RESPONSE_RETENTION_OVERRIDE_SECONDS: '1', PRUNE_INTERVAL_SECONDS: '1' },
    actions: { 'note.add': { ...TRANSACTIONAL, responseRetentionDays: 90 } },
  });
});
afterAll(() => stage?.clear());

/** Read before anything starts: how that ends the start is seen by one of them below. */
test.each([
  ['PORT', '65536'],
  ['PORT', '-1'],
  ['DATABASE_URL', 'hunter2'],
  ['MAX_QUEUED_DECISIONS', '0'],
  ['RESPONSE_RETENTION_OVERRIDE_SECONDS', 'soon'],
  ['RESPONSE_RETENTION_OVERRIDE_SECONDS', '-1'],
  ['PRUNE_INTERVAL_SECONDS', 'often'],
  ['PRUNE_INTERVAL_SECONDS', '1.5'],
  ['METRICS_PORT', '99999'],
  ['WORKER', 'maybe'],
  ['LOG_ORIGIN', 'two words'],
  ['LOG_ORIGIN', 'log.example/'],
  ['LOG_ORIGIN', 'a+b'],
  ['SEAL_INTERVAL_MS', '0'],
  ['OIDC_ISSUER', 'https://login.example.com'],
])('%s=%s cannot be used: its name is told, and no secret', (name, value) => {
  const read = (): unknown => readSettings({ [name]: value });
  expect(read).toThrow(SettingError);
  expect(read).toThrow(name);
  expect(read).not.toThrow('hunter2');
});

describe('a bad setting stops the start, with its name', () => {
  test.each([
    ['PORT', 'http'],
    ['HOST', 'no such host'],
    ['DATABASE_URL', 'mysql://root:hunter2@localhost/x'],
    ['LOG_SIGNING_KEY', 'hunter2'],
    ['LOG_PREVIOUS_SIGNING_KEY', 'hunter2'],
  ])('%s=%s', async (name, value) => {
    const starting = startService({ DATABASE_URL: stage.database.url, [name]: value });
    const error: unknown = await starting.then(
      (service) => service.kill(),
      (reason: unknown) => reason,
    );
    expect(String(error)).toContain(`${name}`);
    expect(String(error)).not.toContain('hunter2');
    expect(String(error)).not.toMatch(/\n\s+at /);
  });

  test('a port that is taken is told in a line', async () => {
    const { port } = new URL(stage.service.url);
    const error: unknown = await startService({ DATABASE_URL: stage.database.url, PORT: port }).catch(
      (reason: unknown) => reason,
    );
    expect(String(error)).toContain('PORT');
    expect(String(error)).toContain(port);
  });
});

describe('the worker', () => {
  const kept = (): Promise<number> => stage.database.count('SELECT count(*) FROM idempotency_record');

  test('off: nothing is pruned; only: it prunes, and serves nothing', async () => {
    const first = await stage.orchestrator.decide({ inputs: inputs() });
    const overdue = (): Promise<number> =>
      stage.database.count(`SELECT count(*) FROM idempotency_record WHERE expires_at < now() - interval '2 seconds'`);
    expect(await until(overdue, (rows) => rows === 1)).toBe(1);
    const port = await freePort();
    const worker = await startLoneWorker({
      DATABASE_URL: stage.database.url,
      DATABASE_POOL_SIZE: '2',
      PRUNE_INTERVAL_SECONDS: '1',
      PORT: String(port),
    });
    expect(await until(kept, (rows) => rows === 0)).toBe(0);
    const refusal = await new Promise((resolve) => connect(port, '127.0.0.1').on('error', resolve));
    expect(refusal).toMatchObject({ code: 'ECONNREFUSED' });
    expect(await worker.stop()).toBe(0);
    const late = await stage.orchestrator.decide({ inputs: inputs() });
    expect([late.status, late.text]).toEqual([201, first.text]);
  });
});

test('with DATABASE_URL nothing is made by itself', async () => {
  const empty = await setStage({ actions: {} });
  expect(await empty.database.count(`SELECT count(*) FROM tenant WHERE tenant_id <> 'acme'`)).toBe(0);
  expect(await empty.database.count(`SELECT count(*) FROM credential WHERE tenant_id <> 'acme'`)).toBe(0);
  expect(await empty.database.count('SELECT count(*) FROM action_version')).toBe(0);
  await empty.clear();
});
