import { inputs, type Client, type Reply } from './client.js';
import { startProvider, type Provider, type Step } from './provider.js';
import { putActions, setStage, until, type Stage } from './stage.js';

/** A host that may be called, and that nobody is at: every connection is refused. */
export const NOWHERE = '127.0.0.1:1';

/** A stage with another system beside it, which the service may call. */
export interface DispatchStage extends Stage {
  readonly provider: Provider;
  /** Puts an action that is dispatched to the provider. */
  act(
    action: string,
    dispatch?: Readonly<Record<string, unknown>>,
    rules?: Readonly<Record<string, unknown>>,
  ): Promise<void>;
  /** Registers a decision whose call the provider meets with these steps, one for each arrival of its key. */
  decide(
    key: string,
    action: string,
    script?: readonly Step[],
    headers?: Readonly<Record<string, string>>,
  ): Promise<Reply>;
  /** The decision once its state is no longer in_flight. */
  settled(decisionId: string, limitMs?: number): Promise<Reply>;
}

export async function setDispatchStage(env: Readonly<Record<string, string>> = {}): Promise<DispatchStage> {
  const provider = await startProvider();
  const stage = await setStage({ env: { DISPATCH_ALLOWED_HOSTS: `${provider.host},${NOWHERE}`, ...env } });
  return {
    ...stage,
    provider,
    act: (action, dispatch = {}, rules = {}) =>
      putActions(stage.admin, {
        [action]: { execution: 'dispatched', ...rules, dispatch: { url: provider.url(), ...dispatch } },
      }),
    decide: (key, action, script = [{}], headers = {}) =>
      stage.orchestrator.post('/v1/decisions', request(key, action, script), { 'idempotency-key': key, ...headers }),
    settled: (decisionId, limitMs = 20_000) => settled(stage.orchestrator, decisionId, limitMs),
    async clear() {
      await stage.clear();
      await provider.close();
    },
  };
}

export function request(key: string, action: string, script: readonly Step[] = [{}]): Record<string, unknown> {
  return { inputs: inputs({ action, subject: { type: 'case', id: key }, params: { reference: key, script } }) };
}

export function settled(client: Client, decisionId: string, limitMs = 20_000): Promise<Reply> {
  return until(
    () => client.get(`/v1/decisions/${decisionId}`),
    ({ status, body }) => status === 200 && body.state !== 'in_flight',
    limitMs,
  );
}

/** All that the database holds, as text: what is not in here is in no row. */
export async function everyRow(stage: Stage): Promise<string> {
  const tables = await stage.database.query<{ name: string }>(
    `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY 1`,
  );
  const dumps: string[] = [];
  for (const { name } of tables) {
    const rows = await stage.database.query<{ row: string }>(`SELECT t::text AS row FROM "${name}" t`);
    dumps.push(...rows.map(({ row }) => `${name} ${row}`));
  }
  return dumps.join('\n');
}
