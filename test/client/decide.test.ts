import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  Applied,
  DuplicateSubject,
  KeyReused,
  NoEffect,
  OutcomeUnknown,
  Refusal,
  Refused,
  Rejected,
  RunFailed,
  SameContent,
  StillInFlight,
  type RunContext,
  WrongExecution,
} from '../../libs/client/src/index.js';
import { deriveContentKey } from '#key';
import { type Ledger, LEDGERS } from './ledgers.js';
import { clientOf, errorOf, freshInputs, pause } from './support.js';

describe.each(LEDGERS)('against %s', (_, start) => {
  let ledger: Ledger;
  beforeAll(async () => {
    ledger = await start();
  });
  afterAll(() => ledger?.stop());

  describe('an action that the service executes', () => {
    test('is decided without a run, once', async () => {
      const inputs = freshInputs('note.add');
      const first = await clientOf(ledger).decide(inputs);
      expect(first).toMatchObject({
        key: deriveContentKey({ ...inputs, tenantId: ledger.tenant }).key,
        outcome: { status: 'applied' },
        effect: { kind: 'note.add', status: 'applied', externalRef: null },
        replayed: false,
      });
      expect(await clientOf(ledger).decide(inputs)).toEqual({ ...first, replayed: true });
    });

    test('whose subject is taken gives DuplicateSubject with the winner, every time', async () => {
      const inputs = freshInputs('case.close');
      const winner = await clientOf(ledger).decide(inputs);
      const again = { ...inputs, model: { id: 'm-2', version: '1' } };
      const error = await errorOf(clientOf(ledger).decide(again));
      expect(error).toBeInstanceOf(DuplicateSubject);
      expect(error).toMatchObject({ state: 'completed', replayed: false, code: 'duplicate-subject' });
      expect((error as DuplicateSubject).winner).toMatchObject({ decisionId: winner.decisionId, key: winner.key });
      const repeated = await errorOf(clientOf(ledger).decide(again));
      expect(repeated).toMatchObject({ decisionId: (error as DuplicateSubject).decisionId, replayed: true });
    });

    test('is not run by the caller: a run that was given is a mistake, and is told', async () => {
      let runs = 0;
      const error = await errorOf(clientOf(ledger).decide(freshInputs('note.add'), () => (runs += 1)));
      expect(error).toBeInstanceOf(WrongExecution);
      expect([runs, (error as WrongExecution).state]).toEqual([0, 'completed']);
    });
  });

  describe('an action that the caller executes', () => {
    test('is run once, with the key and its forms, and its result is recorded', async () => {
      const inputs = freshInputs('refund.create');
      const seen: RunContext[] = [];
      const run = (context: RunContext): Applied<{ id: string }> => {
        seen.push(context);
        return new Applied({ id: 're_1' }, 'pay-77');
      };
      const first = await clientOf(ledger).decide(inputs, run);
      expect(first).toMatchObject({
        outcome: { status: 'applied', result: { id: 're_1' } },
        effect: { kind: 'refund.create', externalRef: 'pay-77' },
        replayed: false,
      });
      const again = await clientOf(ledger).decide(inputs, run);
      expect(again).toEqual({ ...first, replayed: true });
      expect(seen).toHaveLength(1);
      expect(seen[0]).toMatchObject({
        key: first.key,
        decisionId: first.decisionId,
        lease: { number: 1 },
        downstreamKeys: { key: first.key, hex40: first.key.slice(-40), hex32: first.key.slice(-40, -8) },
      });
      expect(seen[0]?.downstreamKeys.uuid4).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab]/);
    });

    test.each(['step 3, "quoted" \\ and all', 'k1', 'dl:run-81/step-3'])(
      'takes the key %j of the caller',
      async (name) => {
        const key = `${name} ${freshInputs('refund.create').subject.id}`;
        const inputs = freshInputs('refund.create');
        const outcome = await clientOf(ledger).decide(inputs, () => null, { key });
        expect(outcome.key).toBe(key);
        const error = await errorOf(clientOf(ledger).decide(freshInputs('refund.create'), () => null, { key }));
        expect(error).toBeInstanceOf(KeyReused);
        expect(error).toMatchObject({ key, decisionId: outcome.decisionId, state: 'completed' });
      },
    );

    test('twins in two processes run once and end in the one outcome', async () => {
      const inputs = freshInputs('refund.create');
      let runs = 0;
      const run = async (): Promise<number> => {
        runs += 1;
        await pause(150);
        return runs;
      };
      const both = await Promise.all([1, 2, 3].map(() => clientOf(ledger, { waitSeconds: 2 }).decide(inputs, run)));
      expect(runs).toBe(1);
      expect(new Set(both.map(({ decisionId }) => decisionId)).size).toBe(1);
      expect(both.filter(({ replayed }) => !replayed)).toHaveLength(1);
    });

    test('twins in one process, over one store, run once', async () => {
      const client = clientOf(ledger, { waitSeconds: 2 });
      const inputs = freshInputs('refund.create');
      let runs = 0;
      const run = async (): Promise<number> => {
        await pause(100);
        return (runs += 1);
      };
      const all = await Promise.all([1, 2, 3, 4].map(() => client.decide(inputs, run)));
      expect([runs, new Set(all.map(({ ledgerEntryId }) => ledgerEntryId)).size]).toEqual([1, 1]);
    });

    test('a twin that cannot wait is told StillInFlight', async () => {
      const inputs = freshInputs('refund.create');
      let end: (value: null) => void = () => undefined;
      const running = clientOf(ledger).decide(inputs, () => new Promise<null>((resolve) => (end = resolve)));
      await pause(100);
      const error = await errorOf(clientOf(ledger, { waitSeconds: 0, retry: { tries: 1 } }).decide(inputs, () => null));
      expect(error).toBeInstanceOf(StillInFlight);
      end(null);
      const { decisionId } = await running;
      expect(error).toMatchObject({ decisionId, state: 'in_flight' });
    });

    test('a Refusal is recorded, thrown as Refused, and repeated without a run', async () => {
      const inputs = freshInputs('refund.create');
      let runs = 0;
      const run = (): never => {
        runs += 1;
        throw new Refusal('limit-exceeded', 'more than is open on the invoice');
      };
      const first = await errorOf(clientOf(ledger).decide(inputs, run));
      expect(first).toBeInstanceOf(Refused);
      expect(first).toMatchObject({ state: 'completed', reason: 'limit-exceeded', replayed: false });
      const again = await errorOf(clientOf(ledger).decide(inputs, run));
      expect(again).toMatchObject({
        decisionId: (first as Refused).decisionId,
        reason: 'limit-exceeded',
        replayed: true,
      });
      expect(runs).toBe(1);
    });

    test('NoEffect frees the key: RunFailed, and the next decide runs', async () => {
      const client = clientOf(ledger);
      const inputs = freshInputs('refund.create');
      const error = await errorOf(
        client.decide(inputs, () => {
          throw new NoEffect('no route to the provider');
        }),
      );
      expect(error).toBeInstanceOf(RunFailed);
      expect(error).toMatchObject({ state: 'failed', cause: expect.any(NoEffect) });
      expect(await client.decide(inputs, ({ lease }) => lease.number)).toMatchObject({ outcome: { result: 2 } });
    });

    test('another error leaves the outcome unknown, and nobody runs it again', async () => {
      const client = clientOf(ledger);
      const inputs = freshInputs('refund.create');
      const cause = new Error('socket hang up');
      const error = await errorOf(client.decide(inputs, () => Promise.reject(cause)));
      expect(error).toBeInstanceOf(OutcomeUnknown);
      expect(error).toMatchObject({ state: 'unknown', cause });
      let runs = 0;
      const again = await errorOf(client.decide(inputs, () => (runs += 1)));
      expect(again).toBeInstanceOf(OutcomeUnknown);
      expect(again).toMatchObject({ decisionId: (error as OutcomeUnknown).decisionId, state: 'unknown' });
      expect(runs).toBe(0);
    });

    test('where errors mean no effect, another error frees the key', async () => {
      const client = clientOf(ledger);
      const inputs = freshInputs('refund.create');
      const failing = client.decide(inputs, () => Promise.reject(new Error('nope')), { errorsMean: 'no-effect' });
      expect(await errorOf(failing)).toBeInstanceOf(RunFailed);
      expect(await client.decide(inputs, () => 'ran')).toMatchObject({ outcome: { result: 'ran' } });
    });

    test('the same content under another key is SameContent where the action refuses it', async () => {
      const inputs = freshInputs('refund.once');
      const key = `first ${inputs.subject.id}`;
      const { decisionId } = await clientOf(ledger).decide(inputs, () => null, { key });
      const error = await errorOf(clientOf(ledger).decide(inputs, () => null, { key: `second ${inputs.subject.id}` }));
      expect(error).toBeInstanceOf(SameContent);
      expect((error as SameContent).winner).toMatchObject({ decisionId, key });
    });

    test('another note with the same key is KeyReused', async () => {
      const inputs = freshInputs('refund.create');
      const { decisionId } = await clientOf(ledger).decide(inputs, () => null, { note: 'as agreed' });
      const error = await errorOf(clientOf(ledger).decide(inputs, () => null, { note: 'as was agreed' }));
      expect(error).toMatchObject({ name: 'KeyReused', decisionId, state: 'completed' });
    });

    test('no run for it is a mistake: told, and the key stays free', async () => {
      const inputs = freshInputs('refund.create');
      const error = await errorOf(clientOf(ledger).decide(inputs));
      expect(error).toBeInstanceOf(WrongExecution);
      expect(error).toMatchObject({ state: 'failed' });
      expect(await clientOf(ledger).decide(inputs, () => 'ran')).toMatchObject({ outcome: { result: 'ran' } });
    });

    test.each([
      ['a bigint', 10n],
      ['an integer beyond 2^53', 2 ** 60],
      ['half a character', '\ud83d'],
      ['more than a body holds', 'x'.repeat(300_000)],
    ])('a result that cannot be recorded (%s) leaves the outcome unknown, not silent', async (_name, result) => {
      const error = await errorOf(clientOf(ledger).decide(freshInputs('refund.create'), () => result));
      expect(error).toBeInstanceOf(OutcomeUnknown);
      expect(error).toMatchObject({ state: 'unknown' });
    });

    test('a refusal whose reason the service does not take is a failure without effect', async () => {
      const error = await errorOf(
        clientOf(ledger).decide(freshInputs('refund.create'), () => {
          throw new Refusal('x'.repeat(300));
        }),
      );
      expect(error).toBeInstanceOf(RunFailed);
      expect(error).toMatchObject({ state: 'failed', cause: expect.any(Rejected) });
    });

    test('what JSON leaves out is left out of the result', async () => {
      const result = { at: new Date(0), none: undefined };
      const { outcome } = await clientOf(ledger).decide(freshInputs('refund.create'), () => result);
      expect(outcome.result).toEqual({ at: '1970-01-01T00:00:00.000Z' });
      const nothing = await clientOf(ledger).decide<void>(freshInputs('refund.create'), () => undefined);
      expect(nothing.outcome.result).toBeNull();
    });
  });

  describe('what the service will not take is Rejected, with its code', () => {
    test('an action that is not in the inventory; mended, the same key runs', async () => {
      const key = `mended ${freshInputs('x').subject.id}`;
      const error = await errorOf(clientOf(ledger).decide(freshInputs('no.such'), () => null, { key }));
      expect(error).toBeInstanceOf(Rejected);
      expect(error).toMatchObject({ status: 422, code: 'unknown-action', decisionId: null, state: null });
      expect((await clientOf(ledger).decide(freshInputs('refund.create'), () => 1, { key })).key).toBe(key);
    });

    test('a bad token, and a token of another tenant', async () => {
      const bad = clientOf(ledger, { token: 'dlk_x_y' }).decide(freshInputs('refund.create'), () => null);
      expect(await errorOf(bad)).toMatchObject({ name: 'Rejected', status: 401, code: 'unauthenticated' });
      const other = clientOf(ledger, { tenant: 'globex' }).decide(freshInputs('refund.create'), () => null);
      expect(await errorOf(other)).toMatchObject({ name: 'Rejected', status: 403, code: 'tenant-mismatch' });
    });

    test('a key in the form of a content key that is not that of these inputs', async () => {
      const key = `dk_${ledger.tenant}_${'0'.repeat(40)}`;
      const error = await errorOf(clientOf(ledger).decide(freshInputs('refund.create'), () => null, { key }));
      expect(error).toMatchObject({ name: 'Rejected', status: 422, code: 'key-derivation-mismatch' });
    });
  });
});
