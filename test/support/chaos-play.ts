import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PROJECT_ROOT } from '#database';
import { CALL_TIMEOUT_MS, type Disturbance, type Schedule } from './chaos-plan.js';
import { actionOf, type ChaosStage } from './chaos-stage.js';
import { inputs } from './index.js';
import { proxyTo, type Proxy } from './proxy.js';

const PROGRAM = join(PROJECT_ROOT, 'test/support/chaos-client.mjs');
/** How soon a client that was killed is started again. */
const RESTART_MS = 150;

/** What a client noted of its life, or the stage of what it did to somebody. */
export interface Line {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly who: string;
  readonly what: string;
  readonly text?: string;
  readonly result?: unknown;
  readonly lease?: number;
  readonly [more: string]: unknown;
}

/** A schedule being played: its key, its clients, and what has been noted. */
export class Play {
  readonly key: string;
  readonly body: { readonly inputs: Record<string, unknown> };
  private readonly folder = mkdtempSync(join(tmpdir(), 'chaos-'));
  private readonly alive = new Map<string, ChildProcess>();
  private readonly done: Line[] = [];
  private road: Proxy | null = null;
  private begin: () => void = () => undefined;
  /** The first client's program is loaded: on a busy machine that takes its time, and nothing can be disturbed before. */
  private readonly begun = new Promise<void>((resolve) => (this.begin = resolve));

  constructor(
    private readonly stage: ChaosStage,
    readonly schedule: Schedule,
  ) {
    this.key = `schedule-${schedule.number}`;
    this.body = {
      inputs: inputs({
        action: actionOf(schedule),
        subject: { type: 'case', id: this.key },
        params: { reference: this.key, script: schedule.script },
      }),
    };
  }

  /** Everything that was noted so far. */
  lines(): Line[] {
    const file = join(this.folder, 'log');
    const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
    return [
      ...this.done,
      ...text
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Line),
    ];
  }

  /** From the first request until every client has come to its end by itself and every disturbance is over. */
  async disturbed(): Promise<void> {
    const { client, disturbances } = this.schedule;
    this.road = await proxyTo(() => this.stage.apiUrl());
    await Promise.all([
      sleep(client.startMs).then(() => this.live('first')),
      ...disturbances.map(async (disturbance) => {
        await this.begun;
        await sleep(disturbance.atMs);
        this.note(disturbance.what, disturbance);
        await this.disturb(disturbance);
        this.note(`${disturbance.what}: over`, {});
      }),
    ]);
  }

  /** One more life of the first client, which nobody disturbs. */
  async undisturbed(): Promise<void> {
    await this.live('first', { timeoutMs: 10_000, abortMs: null, beforeCallMs: 0, afterCallMs: 0 });
  }

  note(what: string, more: object): void {
    this.done.push({ at: Date.now(), who: 'stage', what, ...more });
  }

  close(): void {
    for (const child of this.alive.values()) child.kill('SIGKILL');
    this.road?.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private async disturb(disturbance: Disturbance): Promise<void> {
    switch (disturbance.what) {
      case 'kill client': {
        // One that has ended already asks again, as an orchestrator that was restarted does.
        await this.kill('first');
        await sleep(RESTART_MS);
        return this.live('first');
      }
      case 'kill client for good':
        return this.kill('first');
      case 'pause client': {
        const child = this.alive.get('first');
        if (child === undefined) return;
        this.stage.count('client paused');
        child.kill('SIGSTOP');
        await sleep(disturbance.forMs);
        child.kill('SIGCONT');
        return;
      }
      case 'cut client':
        this.stage.count('client cut off');
        this.road?.cut();
        await sleep(disturbance.forMs);
        return this.road?.mend();
      case 'twin':
        return this.live('twin');
      case 'twin of its own store':
        return this.live('stranger');
      default:
        return this.stage.disturb(disturbance);
    }
  }

  private async kill(name: string): Promise<void> {
    const child = this.alive.get(name);
    if (child === undefined) return;
    this.stage.count('client killed');
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  /** A process from its start to its end. `first` and `twin` share a store; of each name one lives at a time. */
  private async live(name: string, changes: Partial<Schedule['client']> = {}): Promise<void> {
    if (this.alive.has(name)) return;
    const { schedule, stage, folder, key } = this;
    const life = {
      ...schedule.client,
      ...changes,
      name,
      url: this.road?.url,
      token: stage.tokens.orchestrator,
      tenant: stage.tenant,
      store: join(folder, name === 'stranger' ? 'other' : 'store'),
      log: join(folder, 'log'),
      provider: stage.providerUrl(schedule),
      execution: schedule.execution,
      knowsKeys: schedule.knowsKeys,
      callTimeoutMs: CALL_TIMEOUT_MS,
      key,
      inputs: this.body.inputs,
    };
    this.note(`${name} starts`, {});
    this.stage.count('client started');
    const env = { PATH: process.env['PATH'], LIFE: JSON.stringify(life) };
    const child = spawn(process.execPath, [PROGRAM], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    child.stdout.once('data', () => this.begin());
    this.alive.set(name, child);
    const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
    this.alive.delete(name);
    this.note(`${name} ends`, { code, signal });
  }
}
