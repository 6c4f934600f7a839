import { EXAMPLE_ACTIONS } from '../../examples/index.js';
import { clientsOf, createTenant, freshDatabase, startService, type Client } from './index.js';
import type { Call } from './callers.js';
import type { TestDatabase } from './database.js';
import type { Service, Tokens } from './service.js';

/** The declarative actions of these tests, beside the two examples that have handlers. */
const ACTIONS = {
  'note.add': { execution: 'transactional' },
  'note.repeat': { execution: 'transactional', sameContent: 'allow' },
  'note.refuse': { execution: 'transactional', sameContent: 'refuse' },
  'report.file': { execution: 'transactional', uniqueness: 'subject-and-period' },
  'case.close': { execution: 'transactional', uniqueness: 'subject' },
  ...EXAMPLE_ACTIONS,
};

/** A database with a tenant and its actions, and as many services on it as a test wants. */
export interface House {
  readonly database: TestDatabase;
  readonly services: readonly Service[];
  readonly tokens: Tokens;
  readonly orchestrator: Client;
  /** A call for the nth service, counted round. */
  call(n: number, body: unknown, key?: string, headers?: Readonly<Record<string, string>>): Call;
  close(): Promise<void>;
}

export async function openHouse(instances = 1, env: Readonly<Record<string, string>> = {}): Promise<House> {
  const database = await freshDatabase();
  const services: Service[] = [];
  // One after the other: the first migrates.
  for (let n = 0; n < instances; n += 1) services.push(await startService({ DATABASE_URL: database.url, ...env }));
  const [first] = services;
  if (first === undefined) throw new Error('A house needs a service');
  const tokens = await createTenant(database.url, 'acme');
  const { admin, orchestrator } = clientsOf(first.url, tokens);
  for (const [action, rules] of Object.entries(ACTIONS)) {
    const { status, text } = await admin.put(`/v1/actions/${action}`, rules);
    if (status !== 201) throw new Error(`${action} was not put: ${text}`);
  }
  return {
    database,
    services,
    tokens,
    orchestrator,
    call(n, body, key, headers = {}) {
      const url = services[n % services.length]?.url ?? '';
      return { url, token: tokens.orchestrator, body, headers, ...(key === undefined ? {} : { key }) };
    },
    async close() {
      await Promise.all(services.map((service) => service.stop()));
      await database.drop();
    },
  };
}
