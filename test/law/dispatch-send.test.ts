import { lookup } from 'node:dns';
import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { DispatchTargets, sendCall, type Call, type CallOutcome } from '#effects';
import type { Dispatches, DispatchJob } from '#ledger';
import { LeaseKeeper } from '../../apps/worker/src/lease-keeper.js';

let server: Server;
let port = 0;
let requests = 0;
let connections = 0;
beforeAll(async () => {
  server = createServer((request, response) => {
    requests += 1;
    if (request.url === '/slow') return;
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  server.on('connection', () => (connections += 1));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  port = typeof address === 'object' && address !== null ? address.port : 0;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  requests = 0;
  connections = 0;
});

const targets = new DispatchTargets(
  [
    { host: '127.0.0.1', port: null },
    { host: 'pay.example', port: null },
    { host: 'no-such-host.invalid', port: null },
  ],
  (name) => ({ TOKEN: 'secret', BROKEN: 'one\r\ntwo' })[name],
  (hostname, options, found) =>
    hostname === 'pay.example' ? found(null, [{ address: '127.0.0.2', family: 4 }]) : lookup(hostname, options, found),
);
const HELD = { maySend: () => true, now: Date.now, signal: new AbortController().signal };

function send(url: string, changes: Partial<Call> = {}, guard = HELD): Promise<CallOutcome> {
  const call = {
    url,
    keyHeader: 'Idempotency-Key',
    key: 'k',
    body: '{}',
    timeoutMs: 2_000,
    secretVariables: {},
    ...changes,
  };
  return sendCall(call, targets, guard);
}
const here = (path = '/'): string => `http://127.0.0.1:${port}${path}`;

describe('surely nothing has happened', () => {
  test('when the lease was over by the time that the connection stood', async () => {
    const outcome = await send(here(), {}, { ...HELD, maySend: () => false });
    expect(outcome).toMatchObject({ kind: 'again', mayHaveHappened: false, failure: 'lease-over', isHostDown: false });
    expect([connections, requests]).toEqual([1, 0]);
  });

  test.each<[string, () => Promise<CallOutcome>, string | RegExp]>([
    ['the host is not on the list', () => send('http://127.0.0.2:1/'), 'host-not-allowed'],
    ['the name resolves to this machine', () => send(`http://pay.example:${port}/`), 'ADDRESS_NOT_ALLOWED'],
    ['nobody knows the name', () => send('http://no-such-host.invalid/'), /ENOTFOUND|EAI_AGAIN/],
    ['the connection is refused', () => send('http://127.0.0.1:1/'), 'ECONNREFUSED'],
    ['the other side speaks no TLS', () => send(here().replace('http:', 'https:')), /SSL|EPROTO|ECONNRESET/],
    ['a secret is not there', () => send(here(), { secretVariables: { A: 'NONE' } }), 'unknown-secret'],
    ['a secret fits no header', () => send(here(), { secretVariables: { A: 'BROKEN' } }), 'unusable-header'],
    ['it was stopped before', () => send(here(), {}, { ...HELD, signal: AbortSignal.abort() }), 'stopped'],
  ])('when %s', async (_when, sending, failure) => {
    const outcome = await sending();
    expect(outcome).toMatchObject({ kind: 'again', mayHaveHappened: false, status: null });
    expect(outcome.kind === 'again' ? outcome.failure : '').toMatch(failure);
    expect(requests).toBe(0);
  });
});

describe('it may have happened', () => {
  test('when no answer came in time', async () => {
    expect(await send(here('/slow'), { timeoutMs: 150 })).toMatchObject({
      mayHaveHappened: true,
      failure: 'timeout',
      isHostDown: true,
    });
    expect(requests).toBe(1);
  });

  test('when it was stopped under way, which tells nothing about the host', async () => {
    const guard = { ...HELD, signal: AbortSignal.timeout(150) };
    expect(await send(here('/slow'), {}, guard)).toMatchObject({
      mayHaveHappened: true,
      failure: 'stopped',
      isHostDown: false,
    });
  });
});

describe('a lease', () => {
  const LEASE_MS = 4_000;
  const keeper = (claimedMsAgo: number, extend: () => Promise<boolean> = async () => true): LeaseKeeper =>
    new LeaseKeeper(
      { extend } as unknown as Dispatches,
      { leaseMs: LEASE_MS, claimedAt: performance.now() - claimedMsAgo } as DispatchJob,
    );

  test.each([
    [0, true],
    [2_900, true],
    [3_100, false],
    [4_000, false],
    [60_000, false],
  ])('that was asked for %i ms ago leaves time to send: %s', (claimedMsAgo, maySend) => {
    const one = keeper(claimedMsAgo);
    expect(one.maySend()).toBe(maySend);
    one.stop();
  });

  test('is renewed at a third of it, and says so when it is lost', async () => {
    let renewals = 0;
    const one = keeper(2_900, async () => (renewals += 1) < 2);
    await new Promise((resolve) => setTimeout(resolve, LEASE_MS / 3 + 200));
    expect([renewals, one.maySend(), one.signal.aborted]).toEqual([1, true, false]);
    await new Promise((resolve) => setTimeout(resolve, LEASE_MS / 3));
    expect([renewals, one.signal.aborted]).toEqual([2, true]);
    one.stop();
  });
});
