import type { Client } from './client.js';
import type { TestDatabase } from './database.js';
import { clientsOf, createTenant, startService, type Service, type Tokens } from './service.js';
import { stagedDatabase } from './template.js';

/** A tenant with a caller for each role. */
export interface Cast extends Record<keyof Tokens, Client> {
  readonly tenant: string;
  readonly tokens: Tokens;
}

/** A database, a service on it and a tenant: what a story needs before it begins. */
export interface Stage extends Cast {
  readonly database: TestDatabase;
  readonly service: Service;
  /** Another tenant on the same service. */
  addTenant(tenant: string): Promise<Cast>;
  /** Another process of the service on the same database. */
  addService(env?: Readonly<Record<string, string>>): Promise<Service>;
  /** How many effects were applied, ledger entries written and decisions recorded, over all tenants. */
  tally(): Promise<Tally>;
  clear(): Promise<void>;
}

export interface Tally {
  readonly effects: number;
  readonly entries: number;
  readonly decisions: number;
}

/** The rules of an action that needs nothing but its name. */
export const TRANSACTIONAL = { execution: 'transactional' } as const;

/**
 * Sets up a story in one call.
 *
 * @param actions what the tenant `acme` may decide, by name; `note.add` if nothing is said
 */
export async function setStage({
  env = {},
  actions = { 'note.add': TRANSACTIONAL },
}: {
  env?: Readonly<Record<string, string>>;
  actions?: Readonly<Record<string, unknown>>;
} = {}): Promise<Stage> {
  const { database, tokens } = await stagedDatabase();
  const services: Service[] = [];
  const addService = async (more: Readonly<Record<string, string>> = {}): Promise<Service> => {
    const started = await startService({ DATABASE_URL: database.url, DATABASE_POOL_SIZE: '5', ...env, ...more });
    services.push(started);
    return started;
  };
  const service = await addService();
  const castOf = (tenant: string, given: Tokens): Cast => ({ tenant, tokens: given, ...clientsOf(service.url, given) });
  const addTenant = async (tenant: string): Promise<Cast> => castOf(tenant, await createTenant(database.url, tenant));
  const cast = castOf('acme', tokens);
  await putActions(cast.admin, actions);
  return {
    ...cast,
    database,
    service,
    addTenant,
    addService,
    async tally() {
      const [row] = await database.query<Tally & Record<string, number>>(
        `SELECT (SELECT count(*)::integer FROM effect) AS effects, (SELECT count(*)::integer FROM ledger_entry) AS entries,
                (SELECT count(*)::integer FROM decision_record) AS decisions`,
      );
      if (row === undefined) throw new Error('SELECT without FROM gave no row');
      return row;
    },
    async clear() {
      await Promise.all(services.map((one) => one.kill()));
      await database.drop();
    },
  };
}

/** Puts actions into the inventory of a tenant. */
export async function putActions(admin: Client, actions: Readonly<Record<string, unknown>>): Promise<void> {
  for (const [action, rules] of Object.entries(actions)) {
    const reply = await admin.put(`/v1/actions/${action}`, rules);
    if (reply.status >= 300) throw new Error(`${action} could not be put: ${reply.text}`);
  }
}

/** Asks again until the answer is as wanted, and gives back the last one; whoever asked then looks at it. */
export async function until<T>(ask: () => Promise<T>, isWanted: (answer: T) => boolean, limitMs = 10_000): Promise<T> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const answer = await ask();
    if (isWanted(answer) || performance.now() >= deadline) return answer;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
