import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Route = 'register' | 'lease' | 'completion' | 'failure';

/** What happens to one request on its way. */
export type Fault =
  /** The connection breaks before the service has seen the request. */
  | { readonly kind: 'reset-before' }
  /** The service answers, and the connection breaks before the client has the answer. */
  | { readonly kind: 'reset-after' }
  /** The service answers, and half of the answer arrives. */
  | { readonly kind: 'truncated' }
  /** The answer comes so much later. */
  | { readonly kind: 'slow'; readonly ms: number }
  /** Something between answers instead of the service. */
  | {
      readonly kind: 'instead';
      readonly status: number;
      readonly text?: string;
      readonly headers?: Readonly<Record<string, string>>;
    };

export interface Seen {
  readonly route: Route;
  readonly path: string;
  readonly body: string;
  readonly headers: IncomingMessage['headers'];
  /** By `performance.now()`. */
  readonly atMs: number;
}

/** The road to a ledger, with its accidents. */
export interface FaultyProxy {
  readonly url: string;
  /** Every request that arrived here, in order. */
  readonly seen: Seen[];
  /** The next requests of a route meet these faults, one each. */
  plan(route: Route, ...faults: readonly Fault[]): void;
  /** Every request of a route meets the fault, until null. */
  always(route: Route, fault: Fault | null): void;
  /** Called as a request arrives, before it is handed on. */
  onArrival: (seen: Seen) => void | Promise<void>;
  stop(): Promise<void>;
}

export async function startFaultyProxy(target: string): Promise<FaultyProxy> {
  const planned: Record<Route, Fault[]> = { register: [], lease: [], completion: [], failure: [] };
  const standing: Partial<Record<Route, Fault | null>> = {};
  const seen: Seen[] = [];
  const server = createServer((request, response) => void handle(request, response).catch(() => response.destroy()));

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const path = request.url ?? '';
    const route = routeOf(path);
    const arrived: Seen = {
      route,
      path,
      body: Buffer.concat(chunks).toString(),
      headers: request.headers,
      atMs: performance.now(),
    };
    seen.push(arrived);
    await proxy.onArrival(arrived);
    const fault = planned[route].shift() ?? standing[route] ?? null;
    if (fault?.kind === 'reset-before') return void response.socket?.resetAndDestroy();
    if (fault?.kind === 'instead') {
      return void response.writeHead(fault.status, fault.headers).end(fault.text ?? '');
    }
    const names = ['authorization', 'content-type', 'idempotency-key', 'prefer'];
    const headers = names.flatMap((name): [string, string][] => {
      const value = request.headers[name];
      return typeof value === 'string' ? [[name, value]] : [];
    });
    const reply = await fetch(target + path, { method: 'POST', headers, body: arrived.body });
    const text = await reply.text();
    if (fault?.kind === 'reset-after') return void response.socket?.resetAndDestroy();
    if (fault?.kind === 'slow') await new Promise((resolve) => setTimeout(resolve, fault.ms));
    const kept = ['content-type', 'idempotent-replayed', 'retry-after', 'date', 'x-request-id'];
    const passed = kept.flatMap((name): [string, string][] => {
      const value = reply.headers.get(name);
      return value === null ? [] : [[name, value]];
    });
    response.writeHead(reply.status, Object.fromEntries([...passed, ['content-length', `${Buffer.byteLength(text)}`]]));
    if (fault?.kind !== 'truncated') return void response.end(text);
    response.write(text.slice(0, text.length / 2), () => response.socket?.destroy());
  }

  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const proxy: FaultyProxy = {
    url: `http://127.0.0.1:${port}`,
    seen,
    plan: (route, ...faults) => void planned[route].push(...faults),
    always: (route, fault) => void (standing[route] = fault),
    onArrival: () => undefined,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return proxy;
}

function routeOf(path: string): Route {
  const end = /\/(lease|completion|failure)$/.exec(path)?.[1];
  return end === 'lease' || end === 'completion' || end === 'failure' ? end : 'register';
}
