import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { dispositions } from '../support/audit.js';
import { atOnce, claim } from '../support/leases.js';
import { inputs, type Reply } from '../support/index.js';
import { setStage, until, type Stage } from '../support/stage.js';

const APPLIED = { status: 'applied', result: { refundId: 're_93' }, externalRef: 're_93' };
const REFUSED = { status: 'refused', reason: 'card-closed', detail: 'The card was closed.' };

// What time does to a caller's decision without any request: sweeping, and pruning.
let stage: Stage;
beforeAll(async () => {
  const rules = { execution: 'caller', leaseSeconds: 1 };
  stage = await setStage({
    env: { RESPONSE_RETENTION_OVERRIDE_SECONDS: '1', PRUNE_INTERVAL_SECONDS: '1', SWEEP_INTERVAL_SECONDS: '1' },
    actions: { 'pay.send': rules, 'pay.blind': { ...rules, onExpiredLease: 'unknown' } },
  });
});
afterAll(() => stage?.clear());

const about = (action: string, id: string): unknown => ({ inputs: inputs({ action, subject: { type: 'case', id } }) });
const record = async (key: string): Promise<Record<string, unknown>> =>
  (await stage.orchestrator.get(`/v1/idempotency-records/${key}`)).body;

test('a lease that ran out is marked unknown by the sweeper where the action says so, and its holder may still complete it', async () => {
  const held = await claim(stage.orchestrator, about('pay.blind', 'swept'), 'swept');
  const swept = await until(
    () => record('swept'),
    ({ status }) => status !== 'in_flight',
  );
  expect(swept).toMatchObject({ status: 'unknown', decisionId: held.decisionId, expiresAt: null });
  const { body } = await stage.auditor.get('/v1/decisions?state=unknown');
  expect(body.items.map((row: { decisionId: string }) => row.decisionId)).toEqual([held.decisionId]);
  expect((await held.complete(APPLIED)).status).toBe(200);
});

test('one that may be reclaimed is left to the next request, and so is its state', async () => {
  const held = await claim(stage.orchestrator, about('pay.send', 'left'), 'left');
  await until(
    () =>
      stage.database.count(
        "SELECT count(*) FROM idempotency_record WHERE locked_until < clock_timestamp() - interval '2 seconds'",
      ),
    (count) => count === 1,
  );
  expect(await record('left')).toMatchObject({ status: 'in_flight', decisionId: held.decisionId });
  expect((await claim(stage.orchestrator, about('pay.send', 'left'), 'left')).reply.body.lease.number).toBe(2);
});

test('one that was reclaimed five times is marked unknown by the sweeper, and not run for ever', async () => {
  const { decisionId } = await claim(stage.orchestrator, about('pay.send', 'crashes'), 'crashes');
  await stage.database.query('UPDATE idempotency_record SET reclaims = 5 WHERE decision_id = $1', [decisionId]);
  const swept = await until(
    () => record('crashes'),
    ({ status }) => status !== 'in_flight',
  );
  expect(swept['status']).toBe('unknown');
  expect((await atOnce(stage.orchestrator, about('pay.send', 'crashes'), 'crashes')).body).toMatchObject({
    code: 'outcome-unknown',
    retryable: false,
    decisionId,
    state: 'unknown',
  });
});

test.each([
  ['applied', APPLIED, 201],
  ['refused', REFUSED, 409],
])(
  'an outcome that was %s is answered from the ledger once its response is pruned, byte for byte',
  async (name, outcome, status) => {
    const key = `pruned-${name}`;
    const held = await claim(stage.orchestrator, about('pay.send', key), key);
    const done: Reply = await held.complete(outcome);
    await until(
      () => stage.database.count('SELECT count(*) FROM idempotency_record WHERE idem_key = $1', [key]),
      (count) => count === 0,
    );
    const late = await stage.orchestrator.decide(about('pay.send', key), key);
    expect([late.status, late.text, late.headers.get('idempotent-replayed')]).toEqual([status, done.text, 'true']);
    expect(late.headers.get('idempotency-expires')).toBe(done.headers.get('idempotency-expires'));
    expect(await record(key)).toMatchObject({ status: 'expired', decisionId: held.decisionId, lockedUntil: null });
    expect((await stage.orchestrator.decide(about('pay.send', `${key}-other`), key)).body.code).toBe(
      'fingerprint-mismatch',
    );
    const again = await held.complete(outcome);
    expect([again.status, again.text, again.headers.get('idempotent-replayed')]).toEqual([
      done.status,
      done.text,
      'true',
    ]);
    expect((await held.fail('none')).body).toMatchObject({ code: 'lease-lost', state: 'completed' });
    expect(await dispositions(stage.database, key)).toMatchObject({ created: 1, completed: 1 });
  },
);

test('a resolution is known again too once its response is pruned, and another is not taken for it', async () => {
  const held = await claim(stage.orchestrator, about('pay.send', 'resolved'), 'resolved');
  await held.fail('unknown');
  const resolve = (body: unknown): Promise<Reply> =>
    stage.admin.post(`/v1/decisions/${held.decisionId}/resolution`, body);
  const done = await resolve({ outcome: APPLIED });
  await until(
    () => stage.database.count(`SELECT count(*) FROM idempotency_record WHERE idem_key = 'resolved'`),
    (count) => count === 0,
  );
  const again = await resolve({ outcome: APPLIED });
  expect([again.status, again.text, again.headers.get('idempotent-replayed')]).toEqual([200, done.text, 'true']);
  expect((await resolve({ outcome: REFUSED })).body).toMatchObject({
    code: 'fingerprint-mismatch',
    state: 'completed',
  });
  expect((await resolve({ release: true, reason: 'x' })).body).toMatchObject({
    code: 'not-unknown',
    state: 'completed',
  });
  expect((await held.complete(APPLIED)).body).toMatchObject({ code: 'lease-lost', state: 'completed' });
});
