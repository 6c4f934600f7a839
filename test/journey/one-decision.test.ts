import { afterAll, beforeAll, expect, test } from '@jest/globals';
import {
  clientsOf,
  createTenant,
  freshDatabase,
  inputs,
  startService,
  type Client,
  type Service,
  type TestDatabase,
} from '../support/index.js';

let database: TestDatabase;
let service: Service;
let orchestrator: Client;
let admin: Client;

beforeAll(async () => {
  database = await freshDatabase();
  service = await startService({ DATABASE_URL: database.url });
  ({ orchestrator, admin } = clientsOf(service.url, await createTenant(database.url, 'acme')));
  await admin.put('/v1/actions/note.add', { execution: 'transactional' });
});

afterAll(async () => {
  await service?.stop();
  await database?.drop();
});

test('records a decision, and answers the same request again with the same bytes', async () => {
  const first = await orchestrator.decide({ inputs: inputs() });
  const again = await orchestrator.decide({ inputs: inputs() });

  expect(first.status).toBe(201);
  expect(first.headers.get('idempotent-replayed')).toBeNull();
  expect(again.status).toBe(201);
  expect(again.text).toBe(first.text);
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  expect(await database.count('SELECT count(*) FROM ledger_entry')).toBe(1);
  expect(await database.count('SELECT count(*) FROM effect')).toBe(1);
});
