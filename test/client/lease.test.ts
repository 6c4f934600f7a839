import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { LeaseLost, memoryStore, OutcomeUnknown, StillInFlight } from '../../libs/client/src/index.js';
import { type Ledger, LEDGERS } from './ledgers.js';
import { clientOf, errorOf, freshInputs, pause } from './support.js';

const UNAVAILABLE = { kind: 'instead', status: 503 } as const;

describe.each(LEDGERS)('against %s', (_, start) => {
  let ledger: Ledger;
  beforeAll(async () => {
    ledger = await start();
  });
  afterAll(() => ledger?.stop());

  describe('the lease', () => {
    test('is renewed while run works, so that it outlives its own length', async () => {
      const inputs = freshInputs('crew.dispatch');
      const since = ledger.road.seen.length;
      const slow = clientOf(ledger).decide(inputs, async ({ signal }) => {
        await pause(4_500);
        return signal.aborted;
      });
      await pause(3_000);
      const twin = await errorOf(
        clientOf(ledger, { waitSeconds: 0, retry: { tries: 1 } }).decide(inputs, () => 'twin'),
      );
      expect(twin).toBeInstanceOf(StillInFlight);
      expect((await slow).outcome.result).toBe(false);
      const renewals = ledger.road.seen.slice(since).filter(({ route }) => route === 'lease').length;
      expect(renewals).toBeGreaterThan(4);
      expect(renewals).toBeLessThan(25);
    });

    test('that is lost aborts the signal; what run did then is LeaseLost, and the other holder’s outcome stands', async () => {
      const inputs = freshInputs('crew.dispatch');
      let reason: unknown;
      let taken: () => void = () => undefined;
      const isTaken = new Promise<void>((resolve) => (taken = resolve));
      const first = errorOf(
        clientOf(ledger).decide(inputs, async ({ signal }) => {
          ledger.road.always('lease', UNAVAILABLE);
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          reason = signal.reason;
          await isTaken;
          return { crew: 7 };
        }),
      );
      await pause(2_500);
      ledger.road.always('lease', null);
      const second = await clientOf(ledger).decide(inputs, ({ lease }) => ({ number: lease.number }));
      taken();
      const error = await first;
      expect(reason).toBeInstanceOf(LeaseLost);
      expect(error).toBeInstanceOf(LeaseLost);
      expect(error).toMatchObject({
        decisionId: second.decisionId,
        unrecorded: { status: 'applied', result: { crew: 7 }, externalRef: null },
      });
      expect(second.outcome.result).toEqual({ number: 2 });
      expect(await clientOf(ledger).decide(inputs, () => 'again')).toEqual({ ...second, replayed: true });
    });

    test('that the service says is lost aborts the signal at once', async () => {
      const inputs = freshInputs('refund.create');
      let abortedAfterMs = Number.NaN;
      const lost = { kind: 'instead', status: 409, text: '{"code":"lease-lost","retryable":false}' } as const;
      const working = clientOf(ledger).decide(
        freshInputs('crew.dispatch', { params: inputs.params }),
        async ({ signal }) => {
          ledger.road.plan('lease', lost);
          const since = performance.now();
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          abortedAfterMs = performance.now() - since;
          return 'done';
        },
      );
      // The service itself still knows the holder: the last holder may complete.
      expect((await working).outcome.result).toBe('done');
      expect(abortedAfterMs).toBeLessThan(1_500);
    });

    test('that ran out unnoticed still completes, if nobody has taken it over', async () => {
      ledger.road.always('lease', null);
      const outcome = await clientOf(ledger).decide(freshInputs('crew.dispatch'), async () => {
        ledger.road.always('lease', UNAVAILABLE);
        await pause(2_600);
        return 'late';
      });
      ledger.road.always('lease', null);
      expect(outcome.outcome.result).toBe('late');
    });

    test('that ran out is not given again where the provider knows no keys: OutcomeUnknown', async () => {
      const inputs = freshInputs('wire.send');
      const store = memoryStore();
      const abandoned = clientOf(ledger, { store }).decide(inputs, () => new Promise(() => undefined));
      void abandoned.catch(() => undefined);
      ledger.road.always('lease', null);
      await pause(200);
      ledger.road.always('lease', UNAVAILABLE);
      await pause(2_500);
      ledger.road.always('lease', null);
      let runs = 0;
      const error = await errorOf(clientOf(ledger, { store }).decide(inputs, () => (runs += 1)));
      expect(error).toBeInstanceOf(OutcomeUnknown);
      expect(error).toMatchObject({ state: 'unknown', code: 'outcome-unknown' });
      expect(runs).toBe(0);
    });
  });

  describe('the caller’s signal', () => {
    test('is passed on to run', async () => {
      const abort = new AbortController();
      const reason = new Error('the user went away');
      const deciding = clientOf(ledger).decide(
        freshInputs('refund.create'),
        async ({ signal }) => {
          abort.abort(reason);
          signal.throwIfAborted();
        },
        { signal: abort.signal },
      );
      expect(await errorOf(deciding)).toMatchObject({ name: 'OutcomeUnknown', cause: reason });
    });

    test('ends the waiting, and nothing is sent once it has aborted', async () => {
      const inputs = freshInputs('refund.create');
      const running = clientOf(ledger).decide(inputs, () => pause(400));
      await pause(100);
      const reason = new Error('enough');
      const abort = new AbortController();
      setTimeout(() => abort.abort(reason), 50);
      const client = clientOf(ledger, { waitSeconds: 5 });
      expect(await errorOf(client.decide(inputs, () => null, { signal: abort.signal }))).toBe(reason);
      const seen = ledger.road.seen.length;
      expect(await errorOf(client.decide(inputs, () => null, { signal: abort.signal }))).toBe(reason);
      expect(ledger.road.seen).toHaveLength(seen);
      await running;
    });
  });
});
