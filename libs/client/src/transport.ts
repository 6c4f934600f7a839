import { isMembers, jsonOf, type Members } from './members.js';
import { pauseMs, type RetryPolicy, sleep } from './retry.js';

/** Statuses that ask for another try where the answer is not the service's own, as a proxy's is not. */
const TRANSIENT = new Set([408, 425, 429]);

/** What came back. */
export interface Answer {
  readonly status: number;
  /** Null if it was not a JSON object. */
  readonly body: Members | null;
  readonly replayed: boolean;
  /** 0 if the service did not ask for a pause. */
  readonly retryAfterMs: number;
  /** The `Date` header, by the server's clock; null without one. Only ever compared with other times of the server's. */
  readonly serverTimeMs: number | null;
}

/** One request; sent again, it is the same bytes. */
export interface Post {
  readonly path: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** How long the service may hold the request beyond its own work, in milliseconds. */
  readonly heldMs?: number;
}

export interface TransportSettings {
  readonly url: string;
  readonly token: string | (() => string | Promise<string>);
  readonly fetch: typeof fetch;
  readonly retry: RetryPolicy;
}

/** The tries or the budget ran out. `last` is the last answer, null if the last try had none; then `cause` says why. */
export class Exhausted extends Error {
  override readonly name = 'Exhausted';

  constructor(
    readonly last: Answer | null,
    tries: number,
    cause: unknown,
  ) {
    super(`No final answer after ${tries} ${tries === 1 ? 'try' : 'tries'}.`, { cause });
  }
}

/** Posts JSON to the service. */
export class Transport {
  readonly #settings: TransportSettings;

  constructor(settings: TransportSettings) {
    this.#settings = { ...settings, url: settings.url.replace(/\/+$/, '') };
  }

  /**
   * Sends the same bytes until there is an answer that is not {@link isRetryable}.
   *
   * @throws Exhausted; the reason of the signal, if it aborts
   */
  async exchange(post: Post, signal?: AbortSignal): Promise<Answer> {
    const { retry } = this.#settings;
    const deadline = performance.now() + retry.budgetMs;
    for (let tried = 1; ; tried++) {
      let last: Answer | null = null;
      let cause: unknown;
      try {
        const timeLeftMs = Math.max(1, deadline - performance.now());
        last = await this.send(post, Math.min(timeLeftMs, retry.timeoutMs + (post.heldMs ?? 0)), signal);
        if (!isRetryable(last)) return last;
      } catch (error) {
        signal?.throwIfAborted();
        cause = error;
      }
      const pause = pauseMs(retry, tried, last?.retryAfterMs ?? 0);
      if (tried >= retry.tries || performance.now() + pause >= deadline) throw new Exhausted(last, tried, cause);
      await sleep(pause, signal);
    }
  }

  /**
   * Sends once. Redirects are not followed: a token goes to the host that it was configured for and to no other.
   *
   * @throws whatever `fetch` does when there is no complete answer in time; the reason of the signal, if it aborts
   */
  async send(post: Post, timeoutMs: number, signal?: AbortSignal): Promise<Answer> {
    signal?.throwIfAborted();
    const { url, token, fetch: request } = this.#settings;
    const bearer = typeof token === 'string' ? token : await token();
    const abort = new AbortController();
    const giveUp = (): void => abort.abort(signal?.reason);
    const timer = setTimeout(
      () => abort.abort(new Error(`No complete answer within ${Math.round(timeoutMs)} ms.`)),
      timeoutMs,
    );
    // Not AbortSignal.any: on Node 20 what it makes is kept alive by a caller's signal for as long as that lives.
    signal?.addEventListener('abort', giveUp, { once: true });
    try {
      const response = await request(url + post.path, {
        method: 'POST',
        headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json', ...post.headers },
        body: post.body,
        redirect: 'manual',
        signal: abort.signal,
      });
      return readAnswer(response.status, response.headers, await response.text());
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', giveUp);
    }
  }
}

/**
 * Whether the same request may succeed later. The service says so itself (`retryable`); where it was not the service that
 * answered, the status decides. A success that cannot be read, and a decision that the service is still dispatching, are
 * asked for again.
 */
export function isRetryable({ status, body }: Answer): boolean {
  if (status < 300) return body === null || (status === 202 && body['lease'] === undefined);
  if (typeof body?.['retryable'] === 'boolean') return body['retryable'];
  return TRANSIENT.has(status) || status >= 500;
}

function readAnswer(status: number, headers: Headers, text: string): Answer {
  const value = jsonOf(text);
  const date = Date.parse(headers.get('date') ?? '');
  return {
    status,
    body: isMembers(value) ? value : null,
    replayed: headers.get('idempotent-replayed') === 'true',
    retryAfterMs: retryAfterMs(headers.get('retry-after'), date),
    serverTimeMs: Number.isNaN(date) ? null : date,
  };
}

/** Seconds, or a date (RFC 9110, section 10.2.3), which is read by the clock of whoever wrote it. */
function retryAfterMs(value: string | null, serverTimeMs: number): number {
  if (value === null) return 0;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - serverTimeMs;
  return Number.isFinite(ms) && ms > 0 ? ms : 0;
}
