import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { PROJECT_ROOT } from '#database';

/** One request, as a caller process is told to send it. */
export interface Call {
  readonly url: string;
  readonly token: string;
  readonly body: unknown;
  readonly path?: string;
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** What a load's answers are sorted by. */
  readonly id?: string;
}

/** What a caller process was answered; status 0 and the `failure` if the connection gave nothing. */
export interface CallReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly latencyMs: number;
  readonly failure?: string;
}

/** Answers of a load to one call, all alike. */
export interface Said {
  /** That of the call. */
  readonly id: string;
  /** The status of an outcome; the status and code of another problem; or why there was no answer. */
  readonly kind: string;
  readonly isReplay: boolean;
  /** The bytes of an outcome. */
  readonly text: string | null;
  readonly count: number;
}

const CALLER = join(PROJECT_ROOT, 'test/support/caller.mjs');

/** Callers in operating-system processes of their own, which know nothing of one another. */
export class Callers {
  private readonly processes: readonly ChildProcess[];
  private orders = 0;

  constructor(processes = 4) {
    const env = { PATH: process.env['PATH'] };
    this.processes = Array.from({ length: processes }, () => fork(CALLER, { execArgv: [], env }));
  }

  /** Deals the calls out to the processes in turn; each sends its share, `width` at a time. Replies in order of calls. */
  async send(calls: readonly Call[], width = 16): Promise<CallReply[]> {
    const count = this.processes.length;
    const shares = this.processes.map((_, place) => calls.filter((__, index) => index % count === place));
    const answers = await this.tell((place) => ({ what: 'send', calls: shares[place], width }));
    return calls.map((_, index) => {
      const reply = (answers[index % count] as CallReply[])[Math.floor(index / count)];
      if (reply === undefined) throw new Error('A caller lost a reply');
      return reply;
    });
  }

  /** Every process sends calls of the list, drawn by its seed, `width` at a time, until `stopLoad`. */
  async startLoad(calls: readonly Call[], width: number, seed: number): Promise<void> {
    await this.tell((place) => ({ what: 'start', calls, width, seed: seed + place }));
  }

  async replaceLoad(calls: readonly Call[]): Promise<void> {
    await this.tell(() => ({ what: 'replace', calls }));
  }

  /** What the load was answered, after the last call has had its own. */
  async stopLoad(): Promise<Said[]> {
    const answers = await this.tell(() => ({ what: 'stop' }));
    return (answers as Said[][]).flat();
  }

  async stop(): Promise<void> {
    await Promise.all(
      this.processes.map(async (child) => {
        const exited = once(child, 'exit');
        child.disconnect();
        await exited;
      }),
    );
  }

  private async tell(orderOf: (place: number) => unknown): Promise<unknown[]> {
    const id = (this.orders += 1);
    return Promise.all(
      this.processes.map(
        (child, place) =>
          new Promise((resolve) => {
            const listen = (message: unknown): void => {
              const { id: answered, answer } = message as { id: number; answer: unknown };
              if (answered !== id) return;
              child.off('message', listen);
              resolve(answer);
            };
            child.on('message', listen);
            child.send({ id, order: orderOf(place) });
          }),
      ),
    );
  }
}

export const isReplay = (reply: CallReply): boolean => reply.headers['idempotent-replayed'] === 'true';

/** How many answers there were of each status, replays apart: `{ '201': 1, '201 again': 63 }`. */
export function tally(replies: readonly CallReply[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const reply of replies) {
    const kind = reply.failure ?? `${reply.status}${isReplay(reply) ? ' again' : ''}`;
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
}
