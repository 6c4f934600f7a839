import { setTimeout as sleep } from 'node:timers/promises';
import { CALL_TIMEOUT_MS, LEASE_SECONDS, type Disturbance, type Schedule } from './chaos-plan.js';
import { watchCompletions } from './chaos-witness.js';
import { clientsOf, createTenant, freshDatabase, startService, type Service, type Tokens } from './index.js';
import type { TestDatabase } from './database.js';
import { startProvider, type Provider } from './provider.js';
import { proxyTo } from './proxy.js';
import { putActions } from './stage.js';

const SWEEP_SECONDS = 1;
const START_TRIES = 3;
const APIS = 2;
const WORKERS = 3;
const TENANT = 'acme';

/** What everybody has in common while schedules are played: a database, two APIs and three workers on it, and a provider. */
export interface ChaosStage {
  readonly database: TestDatabase;
  readonly provider: Provider;
  /** Of the API that is asked just now; when it is killed, of the other. */
  apiUrl(): string;
  readonly tenant: string;
  readonly tokens: Tokens;
  /** What a schedule's provider is called by. */
  providerUrl(schedule: Schedule): string;
  /** Disturbs what all share. Resolves when it is over, and what was killed is up again. */
  disturb(disturbance: Disturbance): Promise<void>;
  /** Until nothing that was disturbed is still so. */
  calm(): Promise<void>;
  /** What was done to whom, for the figures. */
  count(what: string): void;
  readonly counts: Readonly<Record<string, number>>;
  close(): Promise<void>;
}

/** The name of the action whose rules a schedule needs. */
export function actionOf({ execution, knowsKeys }: Schedule): string {
  return `${execution}.${knowsKeys ? 'keyed' : 'keyless'}`;
}

/** A process of the service that is killed, or stands still, again and again. */
class Victim {
  private service: Service | null = null;
  /** What is being done to it. Whoever comes meanwhile is content with that: nobody is killed while he gets up. */
  private underWay: Promise<void> | null = null;

  constructor(
    private readonly name: string,
    private readonly env: Readonly<Record<string, string>>,
    private readonly count: (what: string) => void,
  ) {}

  get url(): string {
    return this.service?.url ?? '';
  }

  get isWell(): boolean {
    return this.underWay === null;
  }

  start(): Promise<void> {
    return this.alone('started', () => this.up());
  }

  kill(): Promise<void> {
    return this.alone('killed', async () => {
      await this.service?.kill();
      await this.up();
    });
  }

  pause(forMs: number): Promise<void> {
    return this.alone('paused', async () => {
      this.service?.signal('SIGSTOP');
      await sleep(forMs);
      this.service?.signal('SIGCONT');
    });
  }

  /** Until it is up and runs. */
  async calm(): Promise<void> {
    await this.underWay;
  }

  async end(): Promise<void> {
    await this.calm().catch(() => undefined);
    await this.service?.kill();
  }

  private alone(what: string, work: () => Promise<void>): Promise<void> {
    if (this.underWay !== null) return this.underWay;
    this.count(`${this.name} ${what}`);
    this.underWay = work().finally(() => (this.underWay = null));
    return this.underWay;
  }

  /** It ends by itself if the database is away while it starts; whoever runs it starts it again. */
  private async up(): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        this.service = await startService(this.env);
        return;
      } catch (error) {
        if (tries === START_TRIES) throw error;
      }
    }
  }
}

export async function setChaosStage(): Promise<ChaosStage> {
  const database = await freshDatabase();
  const [road, provider] = await Promise.all([proxyTo(database.url), startProvider()]);
  const counts: Record<string, number> = {};
  const count = (what: string): void => void (counts[what] = (counts[what] ?? 0) + 1);
  const env = {
    DATABASE_URL: road.url,
    DISPATCH_ALLOWED_HOSTS: provider.host,
    SWEEP_INTERVAL_SECONDS: String(SWEEP_SECONDS),
    LOG_LEVEL: 'error',
  };
  const apis = Array.from({ length: APIS }, () => new Victim('api', { ...env, WORKER: 'off' }, count));
  const workers = Array.from({ length: WORKERS }, () => new Victim('worker', { ...env, WORKER: 'only' }, count));
  const victims = [...apis, ...workers];
  let [api] = apis;
  // The first migrates.
  await api?.start();
  await Promise.all(victims.filter((victim) => victim !== api).map((victim) => victim.start()));
  const apiUrl = (): string => api?.url ?? '';
  const tokens = await createTenant(database.url, TENANT);
  const { admin } = clientsOf(apiUrl(), tokens);
  const urlOf = (knowsKeys: boolean): string => provider.url(knowsKeys ? '/' : '/?forgets=1');
  for (const knowsKeys of [true, false]) {
    const rules = {
      leaseSeconds: LEASE_SECONDS,
      onExpiredLease: knowsKeys ? 'reclaim' : 'unknown',
      uniqueness: 'subject',
    };
    const dispatch = { url: urlOf(knowsKeys), timeoutMs: CALL_TIMEOUT_MS, maxAttempts: 50 };
    await putActions(admin, {
      [`caller.${knowsKeys ? 'keyed' : 'keyless'}`]: { ...rules, execution: 'caller' },
      [`dispatched.${knowsKeys ? 'keyed' : 'keyless'}`]: { ...rules, execution: 'dispatched', dispatch },
    });
  }
  await watchCompletions(database);

  const disturb = async (disturbance: Disturbance): Promise<void> => {
    switch (disturbance.what) {
      case 'kill api': {
        const next = apis.find((other) => other !== api && other.isWell);
        if (next === undefined) return;
        const killed = api?.kill();
        api = next;
        return killed;
      }
      case 'pause api':
        return api?.pause(disturbance.forMs);
      case 'kill worker':
        return workers[disturbance.worker]?.kill();
      case 'pause worker':
        return workers[disturbance.worker]?.pause(disturbance.forMs);
      case 'cut database':
        count('database cut');
        road.cut();
        await sleep(disturbance.forMs);
        return road.mend();
      default:
        throw new RangeError(`${disturbance.what} disturbs a client, not the stage`);
    }
  };
  return {
    database,
    provider,
    apiUrl,
    tenant: TENANT,
    tokens,
    providerUrl: ({ knowsKeys }) => urlOf(knowsKeys),
    disturb,
    async calm() {
      await Promise.all(victims.map((victim) => victim.calm()));
    },
    count,
    counts,
    async close() {
      await Promise.all(victims.map((victim) => victim.end()));
      road.close();
      await provider.close();
      await database.drop();
    },
  };
}
