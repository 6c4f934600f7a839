import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { pauseMs, retryPolicy } from '../../libs/client/src/retry.js';
import { Rejected, StillInFlight, Unavailable } from '../../libs/client/src/index.js';
import type { Fault, Route } from './faulty-proxy.js';
import { fakeLedger, type Ledger, LEDGERS } from './ledgers.js';
import { clientOf, errorOf, freshInputs } from './support.js';

const problem = (status: number, code: string, retryable: boolean, headers = {}): Fault => ({
  kind: 'instead',
  status,
  text: JSON.stringify({ code, retryable, status }),
  headers: { 'content-type': 'application/problem+json', ...headers },
});

const TRANSIENT: readonly (readonly [string, Fault])[] = [
  ['a connection that breaks before the service has seen it', { kind: 'reset-before' }],
  ['an answer that is lost', { kind: 'reset-after' }],
  ['an answer that breaks off', { kind: 'truncated' }],
  ['500 internal', problem(500, 'internal', true)],
  ['503 unavailable', problem(503, 'unavailable', true)],
  ['429', problem(429, 'too-many-requests', true)],
  ['a proxy’s 502', { kind: 'instead', status: 502, text: '<html>Bad Gateway</html>' }],
  ['a proxy’s 200 that is no answer', { kind: 'instead', status: 200, text: '<html>Sign in</html>' }],
];

describe.each(LEDGERS)('against %s', (_, start) => {
  let ledger: Ledger;
  beforeEach(async () => {
    ledger = await start();
  });
  afterEach(() => ledger?.stop());

  const sent = (route: Route) => ledger.road.seen.filter((seen) => seen.route === route);
  const bodies = (route: Route): Set<string> => new Set(sent(route).map(({ body }) => body));

  describe.each<Route>(['register', 'lease', 'completion'])('on %s', (route) => {
    test.each(TRANSIENT)('%s is tried again with the same bytes and the same key', async (_name, fault) => {
      ledger.road.plan(route, fault, fault);
      let runs = 0;
      const outcome = await clientOf(ledger).decide(freshInputs('refund.create'), () => (runs += 1));
      expect(outcome.outcome.result).toBe(1);
      expect(runs).toBe(1);
      expect(sent(route)).toHaveLength(3);
      expect(bodies(route).size).toBe(1);
      expect(new Set(sent('register').map(({ headers }) => headers['idempotency-key']))).toEqual(
        new Set([`"${outcome.key}"`]),
      );
    });
  });

  test('on failure, an answer that is lost is asked for again with the same bytes', async () => {
    ledger.road.plan('failure', { kind: 'reset-after' }, { kind: 'reset-before' });
    const error = await errorOf(
      clientOf(ledger).decide(freshInputs('refund.create'), () => Promise.reject(new Error('?'))),
    );
    expect(error).toMatchObject({ name: 'OutcomeUnknown', state: 'unknown' });
    expect([sent('failure').length, bodies('failure').size]).toEqual([3, 1]);
  });

  test('a transactional decision whose answer was lost is replayed', async () => {
    ledger.road.plan('register', { kind: 'reset-after' });
    const outcome = await clientOf(ledger).decide(freshInputs('note.add'));
    expect([outcome.replayed, sent('register').length, bodies('register').size]).toEqual([true, 2, 1]);
  });

  test('a lost 202 is recovered by its nonce, without waiting for the lease to end', async () => {
    ledger.road.plan('register', { kind: 'reset-after' });
    const outcome = await clientOf(ledger).decide(freshInputs('refund.create'), ({ lease }) => lease.number);
    expect(outcome.outcome.result).toBe(1);
    expect(JSON.parse(sent('register')[0]?.body ?? '').leaseNonce).toMatch(/^[A-Za-z0-9_-]{32}$/);
  });

  test('a token is asked for at each try', async () => {
    ledger.road.plan('register', { kind: 'reset-before' }, { kind: 'reset-before' });
    let asked = 0;
    const token = async (): Promise<string> => {
      asked += 1;
      return ledger.token;
    };
    await clientOf(ledger, { token }).decide(freshInputs('note.add'));
    expect(asked).toBe(3);
  });

  test.each([
    ['400', problem(400, 'validation-failed', false)],
    ['401', problem(401, 'unauthenticated', false)],
    ['403', problem(403, 'forbidden', false)],
    ['404', problem(404, 'not-found', false)],
    ['413', problem(413, 'too-large', false)],
    ['422', problem(422, 'unsupported-execution', false)],
    ['a 500 that says so itself', problem(500, 'internal', false)],
    ['a proxy’s 403', { kind: 'instead', status: 403, text: 'no' }],
    ['a redirect', { kind: 'instead', status: 307, headers: { location: 'http://127.0.0.1:9/' } }],
  ] as const)('%s is not tried again', async (_name, fault) => {
    ledger.road.plan('register', fault);
    const error = await errorOf(clientOf(ledger).decide(freshInputs('refund.create'), () => null));
    expect(error).toBeInstanceOf(Rejected);
    expect(sent('register')).toHaveLength(1);
  });

  test('the tries run out: Unavailable, with what was the matter; later the same bytes are sent', async () => {
    const client = clientOf(ledger, { retry: { tries: 3 } });
    const inputs = freshInputs('refund.create');
    ledger.road.always('register', { kind: 'reset-after' });
    const error = await errorOf(client.decide(inputs, () => null));
    expect(error).toBeInstanceOf(Unavailable);
    expect(error).toMatchObject({ decisionId: null, state: null, cause: expect.anything() });
    expect(sent('register')).toHaveLength(3);
    ledger.road.always('register', null);
    expect(await client.decide(inputs, ({ lease }) => lease.number)).toMatchObject({ outcome: { result: 1 } });
    expect(bodies('register').size).toBe(1);
  });

  test('an outcome that could not be reported is kept, and reported by the next decide without a run', async () => {
    const client = clientOf(ledger, { retry: { tries: 2 } });
    const inputs = freshInputs('refund.create');
    let runs = 0;
    ledger.road.always('completion', problem(503, 'unavailable', true));
    const error = await errorOf(client.decide(inputs, () => (runs += 1)));
    expect(error).toMatchObject({ name: 'Unavailable', code: 'unavailable', decisionId: expect.any(String) });
    ledger.road.always('completion', null);
    expect(await client.decide(inputs, () => (runs += 1))).toMatchObject({ outcome: { result: 1 } });
    expect([runs, bodies('completion').size]).toEqual([1, 1]);
  });

  test('a network that stays broken is the cause, unless run has failed before it', async () => {
    const client = clientOf(ledger, { retry: { tries: 2 } });
    for (const route of ['completion', 'failure'] as const) ledger.road.always(route, { kind: 'reset-before' });
    const unheard = await errorOf(client.decide(freshInputs('refund.create'), () => 'paid'));
    expect(unheard).toMatchObject({ name: 'Unavailable', problem: null, cause: { message: 'fetch failed' } });
    const cause = new Error('the provider hung up');
    const failed = await errorOf(client.decide(freshInputs('refund.create'), () => Promise.reject(cause)));
    expect(failed).toMatchObject({ name: 'Unavailable', cause });
  });

  test('or by resume', async () => {
    const client = clientOf(ledger, { retry: { tries: 1 } });
    const inputs = freshInputs('refund.create');
    ledger.road.always('completion', problem(503, 'unavailable', true));
    const error = await errorOf(client.decide(inputs, () => 'paid'));
    const { key, decisionId } = error as Unavailable;
    expect(await client.resume()).toMatchObject([
      { key, decisionId, state: 'in_flight', error: { name: 'Unavailable' } },
    ]);
    ledger.road.always('completion', null);
    expect(await client.resume()).toEqual([{ key, decisionId, state: 'completed', error: null }]);
    expect(await client.resume()).toEqual([]);
    expect(await client.decide(inputs, () => 'again')).toMatchObject({ outcome: { result: 'paid' }, replayed: true });
  });

  test('a failure without effect that could not be reported is reported first, then the decision is run', async () => {
    const client = clientOf(ledger, { retry: { tries: 1 } });
    const inputs = freshInputs('refund.create');
    ledger.road.always('failure', { kind: 'reset-before' });
    const failing = client.decide(inputs, () => Promise.reject(new Error('no')), { errorsMean: 'no-effect' });
    expect(await errorOf(failing)).toBeInstanceOf(Unavailable);
    ledger.road.always('failure', null);
    expect(await client.decide(inputs, ({ lease }) => lease.number)).toMatchObject({ outcome: { result: 2 } });
  });

  test('with a revoked token an outcome is kept, and reported with the next one', async () => {
    let token = ledger.token;
    const client = clientOf(ledger, { token: () => token });
    const inputs = freshInputs('refund.create');
    const error = await errorOf(
      client.decide(inputs, () => {
        token = 'dlk_revoked_x';
        return 'paid';
      }),
    );
    expect(error).toMatchObject({ name: 'Rejected', status: 401 });
    token = ledger.token;
    expect(await client.decide(inputs, () => 'again')).toMatchObject({ outcome: { result: 'paid' } });
  });

  test.each([403, 409, 451])(
    'a proxy’s %s to a report is not the service’s word: the outcome is kept',
    async (status) => {
      const client = clientOf(ledger);
      const inputs = freshInputs('refund.create');
      ledger.road.plan('completion', { kind: 'instead', status, text: '<html>Blocked</html>' });
      expect(await errorOf(client.decide(inputs, () => 'paid'))).toMatchObject({
        name: 'Rejected',
        status,
        problem: null,
      });
      expect(await client.decide(inputs, () => 'again')).toMatchObject({
        outcome: { result: 'paid' },
        replayed: false,
      });
    },
  );

  test('a proxy’s 413 to a completion leaves the outcome unknown: it would never pass', async () => {
    ledger.road.plan('completion', { kind: 'instead', status: 413, text: '<html>Too large</html>' });
    const error = await errorOf(clientOf(ledger).decide(freshInputs('refund.create'), () => 'paid'));
    expect(error).toMatchObject({ name: 'OutcomeUnknown', state: 'unknown', cause: { status: 413 } });
  });

  test('the budget ends it before the tries do', async () => {
    ledger.road.always('register', problem(503, 'unavailable', true));
    const since = performance.now();
    const client = clientOf(ledger, { retry: { tries: 10, budgetMs: 300, baseMs: 100, capMs: 100 } });
    expect(await errorOf(client.decide(freshInputs('note.add')))).toBeInstanceOf(Unavailable);
    expect(performance.now() - since).toBeLessThan(700);
    expect(sent('register').length).toBeLessThan(10);
  });

  test('an answer that takes too long is given up and asked for again', async () => {
    ledger.road.plan('register', { kind: 'slow', ms: 5_000 });
    const since = performance.now();
    const client = clientOf(ledger, { retry: { timeoutMs: 400 } });
    expect(await client.decide(freshInputs('refund.create'), () => 'ran')).toMatchObject({
      outcome: { result: 'ran' },
    });
    expect(performance.now() - since).toBeLessThan(3_000);
  });

  test('Retry-After is honoured, in seconds and as a date by the clock of whoever wrote it', async () => {
    const past = { date: 'Mon, 05 Jan 2026 10:00:00 GMT', 'retry-after': 'Mon, 05 Jan 2026 10:00:01 GMT' };
    ledger.road.plan(
      'register',
      problem(409, 'in-flight', true, { 'retry-after': '1' }),
      problem(503, 'unavailable', true, past),
    );
    await clientOf(ledger).decide(freshInputs('note.add'));
    const [first, second, third] = sent('register').map(({ atMs }) => atMs);
    expect((second ?? 0) - (first ?? 0)).toBeGreaterThanOrEqual(990);
    expect((third ?? 0) - (second ?? 0)).toBeGreaterThanOrEqual(990);
  });

  test('a Retry-After beyond the budget is not waited for', async () => {
    ledger.road.always('register', problem(409, 'in-flight', true, { 'retry-after': '60' }));
    const since = performance.now();
    const error = await errorOf(clientOf(ledger).decide(freshInputs('refund.create'), () => null));
    expect(error).toBeInstanceOf(StillInFlight);
    expect(performance.now() - since).toBeLessThan(1_000);
  });

  test('the service is asked to wait as long as it was set', async () => {
    await clientOf(ledger, { waitSeconds: 7 }).decide(freshInputs('note.add'));
    await clientOf(ledger).decide(freshInputs('note.add'));
    expect(sent('register').map(({ headers }) => headers['prefer'])).toEqual(['wait=7', undefined]);
  });
});

test('a decision that the service dispatches is asked for until it is recorded', async () => {
  const ledger = await fakeLedger({ 'letter.send': { execution: 'dispatched' } });
  const inputs = freshInputs('letter.send');
  const pending = await errorOf(clientOf(ledger, { retry: { tries: 1 } }).decide(inputs));
  expect(pending).toMatchObject({ name: 'StillInFlight', decisionId: expect.any(String), state: 'in_flight' });
  const outcome = await clientOf(ledger).decide(inputs);
  expect(outcome).toMatchObject({ decisionId: (pending as StillInFlight).decisionId, effect: { kind: 'letter.send' } });
  const whole = await clientOf(ledger).decide(freshInputs('letter.send'));
  expect(whole.outcome.status).toBe('applied');
  await ledger.stop();
});

describe('the pause', () => {
  test('has full jitter: anywhere between nothing and a bound that doubles up to the cap', () => {
    const policy = retryPolicy({ baseMs: 100, capMs: 500 });
    expect([1, 2, 3, 4, 5].map((tried) => pauseMs(policy, tried, 0, 0.999_999))).toEqual(
      [100, 200, 400, 500, 500].map((bound) => expect.closeTo(bound, 0)),
    );
    expect(pauseMs(policy, 3, 0, 0)).toBe(0);
    const drawn = Array.from({ length: 2_000 }, () => pauseMs(policy, 3, 0));
    const mean = drawn.reduce((sum, ms) => sum + ms, 0) / drawn.length;
    expect(mean).toBeGreaterThan(180);
    expect(mean).toBeLessThan(220);
  });

  test('is never shorter than the service asked for', () => {
    expect(pauseMs(retryPolicy(), 1, 3_000, 0)).toBe(3_000);
  });

  test.each([{ tries: 0 }, { tries: 11 }, { tries: 2.5 }, { budgetMs: -1 }, { timeoutMs: Number.NaN }])(
    'a policy of %j is refused',
    (changes) => {
      expect(() => retryPolicy(changes)).toThrow(RangeError);
    },
  );
});
