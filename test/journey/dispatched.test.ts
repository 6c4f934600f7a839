import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { NOWHERE, setDispatchStage, type DispatchStage } from '../support/dispatching.js';
import { dispositions } from '../support/audit.js';
import { putActions, until } from '../support/stage.js';

let stage: DispatchStage;
beforeAll(async () => {
  stage = await setDispatchStage();
  await stage.act('refund.pay');
});
afterAll(() => stage?.clear());

const WAIT = { prefer: 'wait=20' };

describe('a dispatched decision', () => {
  test('is 202 at once, with the keys that go downstream, and no lease', async () => {
    const reply = await stage.decide('at-once', 'refund.pay', [{ waitMs: 500 }]);
    expect(reply.status).toBe(202);
    expect(reply.headers.get('location')).toBe(`/v1/decisions/${reply.body.decisionId}`);
    expect(Object.keys(reply.body)).toEqual([
      'decisionId',
      'key',
      'keySource',
      'contentKey',
      'state',
      'downstreamKeys',
    ]);
    expect(reply.body).toMatchObject({ key: 'at-once', keySource: 'client', state: 'in_flight' });
    expect(Object.keys(reply.body.downstreamKeys)).toEqual(['key', 'hex40', 'hex32', 'uuid4']);
    const settled = await stage.settled(reply.body.decisionId);
    expect(settled.body).toMatchObject({ state: 'completed', outcome: { status: 'applied' } });
    expect(settled.body.effect).toMatchObject({
      kind: 'refund.pay',
      result: { reference: 'ref-at-once' },
      externalRef: null,
    });
    expect(settled.body.ledgerEntry.recordedBy).toBe('worker');
  });

  test('sends the RFC 8785 bytes of the params, once, with the key in its header', async () => {
    const params = { z: 1, a: 'é', script: [{}], n: { b: [1.5, 1e21], a: null } };
    const body = { inputs: { ...baseInputs('bytes'), params } };
    const reply = await stage.orchestrator.post('/v1/decisions', body, { 'idempotency-key': 'bytes', ...WAIT });
    expect(reply.status).toBe(201);
    const [arrival, ...others] = stage.provider.arrivals('bytes');
    expect(others).toEqual([]);
    expect(arrival?.method).toBe('POST');
    expect(arrival?.body).toBe('{"a":"é","n":{"a":null,"b":[1.5,1e+21]},"script":[{}],"z":1}');
    expect(arrival?.headers).toMatchObject({ 'content-type': 'application/json', 'idempotency-key': 'bytes' });
  });

  test('with Prefer: wait is answered with its outcome, as its own and not as a replay; a retry gets the same bytes', async () => {
    const first = await stage.decide('waits', 'refund.pay', [{ waitMs: 300 }], WAIT);
    expect([first.status, first.headers.get('idempotent-replayed')]).toEqual([201, null]);
    expect(first.headers.get('idempotency-expires')).not.toBeNull();
    expect(first.body).toMatchObject({
      state: 'completed',
      outcome: { status: 'applied', result: { reference: 'ref-waits' } },
    });
    const again = await stage.decide('waits', 'refund.pay', [{ waitMs: 300 }]);
    expect([again.status, again.text, again.headers.get('idempotent-replayed')]).toEqual([201, first.text, 'true']);
    expect(await dispositions(stage.database, 'waits')).toEqual({ created: 1, completed: 1, replayed: 1 });
    expect(stage.provider.effects('waits')).toBe(1);
  });

  test('with Prefer: wait that is too short is still 202', async () => {
    const reply = await stage.decide('short', 'refund.pay', [{ waitMs: 2_500 }], { prefer: 'wait=1' });
    expect([reply.status, reply.body.state]).toEqual([202, 'in_flight']);
    await stage.settled(reply.body.decisionId);
  });

  test('a twin waits and then replays; one that does not wait is told when to come back', async () => {
    const first = await stage.decide('twin', 'refund.pay', [{ waitMs: 1_200 }]);
    const hasty = await stage.decide('twin', 'refund.pay', [{ waitMs: 1_200 }], { prefer: 'wait=0' });
    expect(hasty.status).toBe(409);
    expect(hasty.body).toMatchObject({
      code: 'in-flight',
      retryable: true,
      decisionId: first.body.decisionId,
      state: 'in_flight',
    });
    expect(Number(hasty.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    const patient = await stage.decide('twin', 'refund.pay', [{ waitMs: 1_200 }], { prefer: 'wait=10' });
    expect([patient.status, patient.headers.get('idempotent-replayed')]).toEqual([201, 'true']);
    const other = await stage.decide('twin', 'refund.pay', [{}]);
    expect([other.status, other.body.code]).toEqual([422, 'fingerprint-mismatch']);
    expect(stage.provider.arrivals('twin')).toHaveLength(1);
  });

  test.each([
    ['key', 'Idempotency-Key'],
    ['hex40', 'X-Reference'],
    ['hex32', 'x-reference'],
    ['uuid4', 'Request-Id'],
  ])('sends the key as %s in %s, for client and content keys', async (keyForm, keyHeader) => {
    await stage.act(`form.${keyForm}`, {
      keyForm,
      keyHeader,
      url: stage.provider.url(`/?keyHeader=${keyHeader.toLowerCase()}`),
    });
    const client = await stage.decide(`form-${keyForm}`, `form.${keyForm}`, [{}], WAIT);
    const body = { inputs: { ...baseInputs(keyForm), action: `form.${keyForm}` } };
    const content = await stage.orchestrator.post('/v1/decisions', body, WAIT);
    for (const { body: answered } of [client, content]) {
      const { body: read } = await stage.orchestrator.get(`/v1/decisions/${answered.decisionId}`);
      expect(stage.provider.effects(read.downstreamKeys[keyForm])).toBe(1);
    }
    expect([client.status, content.status, content.body.keySource]).toEqual([201, 201, 'content']);
  });

  test('in a batch ends like each alone, and all are waited for together', async () => {
    const item = (key: string): unknown => ({
      idempotencyKey: key,
      inputs: { ...baseInputs(key), params: { key, script: [{ waitMs: 400 }] } },
    });
    const batch = { decisions: [item('b-1'), item('b-2'), item('b-1')] };
    const { body } = await stage.orchestrator.post('/v1/decisions/batch', batch, { prefer: 'wait=15' });
    expect(body.items.map((one: { status: number; replayed: boolean }) => [one.status, one.replayed])).toEqual([
      [201, false],
      [201, false],
      [201, true],
    ]);
    const { body: quick } = await stage.orchestrator.post('/v1/decisions/batch', { decisions: [item('b-3')] });
    expect(quick.items[0]).toMatchObject({ status: 202, body: { state: 'in_flight' } });
    await stage.settled(quick.items[0].body.decisionId);
  });

  test('holds its subject from the claim on, and takes it for good', async () => {
    await stage.act('case.settle', {}, { uniqueness: 'subject', sameContent: 'allow' });
    const body = (key: string): unknown => ({
      inputs: { ...baseInputs('held'), action: 'case.settle', params: { key, script: [{ waitMs: 800 }] } },
    });
    const first = await stage.orchestrator.decide(body('h-1'), 'h-1');
    const rival = await stage.orchestrator.post('/v1/decisions', body('h-2'), {
      'idempotency-key': 'h-2',
      prefer: 'wait=0',
    });
    expect(rival.body).toMatchObject({ code: 'in-flight', decisionId: first.body.decisionId });
    await stage.settled(first.body.decisionId);
    const late = await stage.orchestrator.decide(body('h-2'), 'h-2');
    expect(late.body).toMatchObject({ code: 'duplicate-subject', winner: { decisionId: first.body.decisionId } });
    expect(stage.provider.arrivals('h-2')).toEqual([]);
  });
});

describe('when the rules change', () => {
  test('what is queued is sent under the rules it was queued under; what failed runs again under the new ones', async () => {
    await stage.act('rule.moves', { maxAttempts: 1, url: stage.provider.url('/old') });
    const slow = await stage.decide('moves-1', 'rule.moves', [{ waitMs: 600 }]);
    await stage.act('rule.moves', { maxAttempts: 1, url: `http://${NOWHERE}/` });
    expect((await stage.settled(slow.body.decisionId)).body.state).toBe('completed');
    const failed = await until(
      () => stage.decide('moves-2', 'rule.moves', [{}], WAIT),
      ({ body }) => body.state === 'failed',
    );
    expect([failed.status, failed.body.state]).toEqual([202, 'failed']);
    await stage.act('rule.moves', { url: stage.provider.url('/new') });
    const mended = await until(
      () => stage.decide('moves-2', 'rule.moves', [{}], WAIT),
      ({ status }) => status === 201,
    );
    expect([mended.status, mended.body.decisionId]).toEqual([201, failed.body.decisionId]);
    expect(stage.provider.arrivals('moves-1').map(({ path }) => path)).toEqual(['/old']);
    expect(stage.provider.arrivals('moves-2').map(({ path }) => path)).toEqual(['/new']);
  });

  test('a lease that its caller let run out goes on with the worker, and what it did may have happened', async () => {
    await putActions(stage.admin, { 'rule.turns': { execution: 'caller', leaseSeconds: 1 } });
    const claimed = await stage.decide('turns', 'rule.turns', [{ status: 500 }]);
    expect(claimed.body.lease.number).toBe(1);
    await stage.act('rule.turns', { maxAttempts: 1, url: `http://${NOWHERE}/` });
    const reply = await until(
      () => stage.decide('turns', 'rule.turns', [{ status: 500 }], WAIT),
      ({ body }) => body.code !== 'in-flight',
    );
    // The one try surely had no effect; what the caller did before it is not known.
    expect([reply.status, reply.body.code]).toEqual([409, 'outcome-unknown']);
  });

  test('what is queued is not given to a caller', async () => {
    await stage.act('rule.back', {});
    const queued = await stage.decide('back', 'rule.back', [{ status: 429, headers: { 'retry-after': '3' } }, {}]);
    await putActions(stage.admin, { 'rule.back': { execution: 'caller', leaseSeconds: 1 } });
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    const script = [{ status: 429, headers: { 'retry-after': '3' } }, {}];
    const caller = await stage.decide('back', 'rule.back', script, { prefer: 'wait=0' });
    expect([caller.status, caller.body.code]).toEqual([409, 'in-flight']);
    expect((await stage.settled(queued.body.decisionId)).body.state).toBe('completed');
  });
});

test('the same content under another key waits for the first and ends in it', async () => {
  const body = { inputs: { ...baseInputs('content'), params: { script: [{ waitMs: 700 }] } } };
  const first = await stage.orchestrator.decide(body, 'content-1');
  const second = await stage.orchestrator.post('/v1/decisions', body, { 'idempotency-key': 'content-2', ...WAIT });
  expect([second.status, second.headers.get('idempotent-replayed')]).toEqual([201, 'true']);
  expect(second.body).toMatchObject({ decisionId: first.body.decisionId, key: 'content-1' });
  expect([...stage.provider.arrivals('content-1'), ...stage.provider.arrivals('content-2')]).toHaveLength(1);
});

test('connections to the database that break in the middle of a call cost nothing', async () => {
  const { body } = await stage.decide('torn', 'refund.pay', [{ waitMs: 800 }]);
  while (stage.provider.arrivals('torn').length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  await stage.database.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'decision-ledger%'`,
  );
  expect((await stage.settled(body.decisionId)).body.state).toBe('completed');
  expect(stage.provider.arrivals('torn')).toHaveLength(1);
  const next = await stage.decide('after-torn', 'refund.pay', [{}], WAIT);
  expect(next.status).toBe(201);
});

function baseInputs(id: string): Record<string, unknown> {
  return {
    subject: { type: 'case', id },
    action: 'refund.pay',
    params: { id },
    model: { id: 'm-1', version: '1' },
    promptTemplateSha256: 'a'.repeat(64),
    retrievalSnapshotId: 'rs-14',
    policyVersion: 'pol-7',
  };
}
