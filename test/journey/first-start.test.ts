import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Client, clientsOf, inputs, startService, type Service, type Tokens } from '../support/index.js';

/** What a first start writes. */
interface FirstCredentials {
  operator: string;
  tenants: Record<string, Tokens>;
}

let dataDir: string;
let service: Service;
let first: FirstCredentials;

const start = (): Promise<Service> => startService({ DATA_DIR: dataDir });
const credentials = async (): Promise<FirstCredentials> =>
  JSON.parse(await readFile(join(dataDir, 'credentials.json'), 'utf8'));

beforeAll(async () => {
  dataDir = join(await mkdtemp(join(tmpdir(), 'first-start-')), 'data');
  service = await start();
  first = await credentials();
});
afterAll(async () => {
  await service?.stop();
  await rm(join(dataDir, '..'), { recursive: true, force: true });
});

test('makes one operator and the tenant demo with its three credentials, readable by the owner only', async () => {
  const token = expect.stringMatching(/^dlk_[^_]+_.+$/);
  expect(first).toEqual({
    operator: token,
    tenants: { demo: { admin: token, orchestrator: token, auditor: token } },
  });
  const { mode } = await stat(join(dataDir, 'credentials.json'));
  expect((mode & 0o777).toString(8)).toBe('600');
});

test('says where the credentials are, and none of them', () => {
  expect(service.output()).toContain(join(dataDir, 'credentials.json'));
  for (const token of [first.operator, ...Object.values(first.tenants['demo'] ?? {})])
    expect(service.output()).not.toContain(token);
});

test('the credentials work, each in its role', async () => {
  const demo = first.tenants['demo'];
  if (demo === undefined) throw new Error('There is no tenant demo');
  const { admin, orchestrator, auditor } = clientsOf(service.url, demo);
  expect((await admin.put('/v1/actions/note.add', { execution: 'transactional' })).status).toBe(201);
  const decided = await orchestrator.decide({ inputs: inputs() });
  expect([decided.status, decided.body.key]).toEqual([201, expect.stringMatching(/^dk_demo_[0-9a-f]{40}$/)]);
  expect((await auditor.get(`/v1/decisions/${decided.body.decisionId}`)).status).toBe(200);
  const operator = new Client(service.url, first.operator);
  expect((await operator.post('/v1/tenants', { tenant: 'acme' })).status).toBe(201);
});

test('a second start makes nothing anew and has kept everything', async () => {
  const demo = first.tenants['demo'];
  if (demo === undefined) throw new Error('There is no tenant demo');
  const before = await clientsOf(service.url, demo).orchestrator.decide({ inputs: inputs() });
  expect(await service.stop()).toBe(0);
  service = await start();
  expect(await credentials()).toEqual(first);
  const again = await clientsOf(service.url, demo).orchestrator.decide({ inputs: inputs() });
  expect([again.status, again.text, again.headers.get('idempotent-replayed')]).toEqual([201, before.text, 'true']);
});
