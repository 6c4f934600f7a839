import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { inputs, type Reply } from '../support/index.js';
import { setStage, TRANSACTIONAL, until, type Stage } from '../support/stage.js';

const ACTIONS = {
  'note.add': TRANSACTIONAL,
  'case.close': { ...TRANSACTIONAL, uniqueness: 'subject' },
  'refund.create': TRANSACTIONAL,
  'sum.pay': { ...TRANSACTIONAL, paramsSchema: { type: 'object', required: ['amount'] } },
};
const DAY_MS = 86_400_000;

let stage: Stage;
beforeAll(async () => {
  stage = await setStage({ actions: ACTIONS });
});
afterAll(() => stage?.clear());

const about = (id: string, changes: Record<string, unknown> = {}): Record<string, unknown> =>
  inputs({ subject: { type: 'case', id }, ...changes });
const isReplay = (reply: Reply): boolean => reply.headers.get('idempotent-replayed') === 'true';
const outcomeHeaders = (reply: Reply): unknown[] =>
  ['content-type', 'location', 'idempotency-expires'].map((name) => reply.headers.get(name));

describe('key known, other fingerprint', () => {
  test('422 with the decision and its state, never the stored response or what differs', async () => {
    const first = await stage.orchestrator.decide({ inputs: about('sealed-1'), note: 'first words' }, 'mm-1');
    const reply = await stage.orchestrator.decide(
      { inputs: about('other-1', { params: { amount: '77.01' } }), note: 'second words' },
      'mm-1',
    );
    expect([reply.status, reply.body.code, reply.body.retryable]).toEqual([422, 'fingerprint-mismatch', false]);
    expect(reply.body).toMatchObject({ decisionId: first.body.decisionId, state: 'completed' });
    for (const hidden of [
      'sealed-1',
      'other-1',
      'words',
      '77.01',
      '10.00',
      first.body.effect.effectId,
      'params',
      'note',
    ])
      expect(reply.text).not.toContain(hidden);
    expect(isReplay(reply)).toBe(false);
  });

  test('comes before an unknown action and before broken params', async () => {
    await stage.orchestrator.decide({ inputs: about('mm-2') }, 'mm-2');
    const unknown = await stage.orchestrator.decide({ inputs: about('mm-2', { action: 'no.such' }) }, 'mm-2');
    const broken = await stage.orchestrator.decide(
      { inputs: about('mm-2', { action: 'sum.pay', params: {} }) },
      'mm-2',
    );
    expect([unknown.body.code, broken.body.code]).toEqual(['fingerprint-mismatch', 'fingerprint-mismatch']);
  });
});

describe('key known, same fingerprint', () => {
  test('the stored status, bytes and headers, and Idempotent-Replayed', async () => {
    const first = await stage.orchestrator.decide({ inputs: about('r-1') }, 'r-1');
    const again = await stage.orchestrator.decide({ inputs: about('r-1') }, 'r-1');
    expect([again.status, again.text]).toEqual([201, first.text]);
    expect(outcomeHeaders(again)).toEqual(outcomeHeaders(first));
    expect([isReplay(first), isReplay(again)]).toEqual([false, true]);
  });

  test('is replayed also when the rules of the action have changed since', async () => {
    const asked = { inputs: about('r-2', { action: 'old.rule', params: { free: true } }) };
    await stage.admin.put('/v1/actions/old.rule', TRANSACTIONAL);
    const first = await stage.orchestrator.decide(asked, 'r-2');
    await stage.admin.put('/v1/actions/old.rule', {
      ...TRANSACTIONAL,
      uniqueness: 'subject-and-period',
      sameContent: 'refuse',
      paramsSchema: { type: 'object', required: ['amount'] },
      responseRetentionDays: 1,
    });
    const again = await stage.orchestrator.decide(asked, 'r-2');
    expect([first.status, again.status, again.text]).toEqual([201, 201, first.text]);
    expect(outcomeHeaders(again)).toEqual(outcomeHeaders(first));
    expect((await stage.orchestrator.decide(asked, 'r-2-new')).status).toBe(400);
  });

  test('a refusal stays the same refusal, however often it is sent', async () => {
    await stage.orchestrator.decide({ inputs: about('r-3', { action: 'case.close' }) });
    const asked = { inputs: about('r-3', { action: 'case.close', policyVersion: 'pol-8' }) };
    const replies: Reply[] = [];
    for (let n = 0; n < 4; n += 1) replies.push(await stage.orchestrator.decide(asked, 'r-3'));
    expect(replies.map(({ status }) => status)).toEqual([409, 409, 409, 409]);
    expect(new Set(replies.map(({ text }) => text)).size).toBe(1);
    expect(new Set(replies.map((reply) => String(outcomeHeaders(reply)))).size).toBe(1);
    expect(replies.map(isReplay)).toEqual([false, true, true, true]);
    expect(replies[0]?.headers.get('content-type')).toContain('application/problem+json');
  });

  test('a replayed problem keeps the requestId of the first in its body, under the caller’s own x-request-id', async () => {
    await stage.orchestrator.decide({ inputs: about('r-4', { action: 'case.close' }) });
    const asked = { inputs: about('r-4', { action: 'case.close', policyVersion: 'pol-8' }) };
    const send = (id: string): Promise<Reply> =>
      stage.orchestrator.post('/v1/decisions', asked, { 'x-request-id': id });
    const [first, again] = [await send('first-id'), await send('second-id')];
    expect([first.body.requestId, again.body.requestId]).toEqual(['first-id', 'first-id']);
    expect([first, again].map(({ headers }) => headers.get('x-request-id'))).toEqual(['first-id', 'second-id']);
  });
});

describe('key known, still in flight', () => {
  /** Holds a key as a request does that has claimed it and not finished. */
  async function hold(key: string): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: stage.database.url });
    await client.connect();
    await client.query('BEGIN');
    await client.query(
      `INSERT INTO idempotency_record (tenant_id, idem_key, key_source, fingerprint, decision_id, status, created_at)
       VALUES ('acme', $1, 'client', $2, $3, 'in_flight', now())`,
      [key, Buffer.alloc(32), randomUUID()],
    );
    return client;
  }

  test.each([
    ['two seconds', {}, 2_000],
    ['as long as Prefer says', { prefer: 'wait=1' }, 1_000],
    ['not at all', { prefer: 'wait=0' }, 0],
  ])('waits %s, then 409 in-flight with Retry-After', async (name, headers, waitMs) => {
    const key = `held ${name}`.replaceAll(' ', '-');
    const holder = await hold(key);
    const startedAt = performance.now();
    const reply = await stage.orchestrator.post(
      '/v1/decisions',
      { inputs: about(key) },
      { 'idempotency-key': key, ...headers },
    );
    const tookMs = performance.now() - startedAt;
    await holder.end();
    expect([reply.status, reply.body.code, reply.body.retryable]).toEqual([409, 'in-flight', true]);
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(tookMs).toBeGreaterThanOrEqual(waitMs - 20);
    expect(reply.headers.get('idempotency-expires')).toBeNull();
    const retried = await stage.orchestrator.decide({ inputs: about(key) }, key);
    expect([retried.status, isReplay(retried)]).toEqual([201, false]);
  });

  test('a holder that goes without finishing leaves the key to the one that waited', async () => {
    const holder = await hold('let-go');
    const waiting = stage.orchestrator.post(
      '/v1/decisions',
      { inputs: about('let-go') },
      { 'idempotency-key': 'let-go', prefer: 'wait=20' },
    );
    await until(
      () =>
        stage.database.count(
          `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
        ),
      (waiters) => waiters > 0,
    );
    await holder.query('ROLLBACK');
    await holder.end();
    const reply = await waiting;
    expect([reply.status, isReplay(reply)]).toEqual([201, false]);
  });
});

describe('key new', () => {
  test('an action that is not in the inventory: 422 unknown-action, and the key stays free', async () => {
    const reply = await stage.orchestrator.decide({ inputs: about('n-1', { action: 'no.such' }) }, 'n-1');
    expect([reply.status, reply.body.code, reply.body.retryable]).toEqual([422, 'unknown-action', false]);
    expect((await stage.orchestrator.decide({ inputs: about('n-1') }, 'n-1')).status).toBe(201);
  });

  test('params that break the schema: 400 with the place, and the key stays free', async () => {
    const broken = about('n-2', { action: 'sum.pay', params: { currency: 'EUR' } });
    const reply = await stage.orchestrator.decide({ inputs: broken }, 'n-2');
    expect([reply.status, reply.body.code]).toEqual([400, 'validation-failed']);
    expect(reply.body.errors[0].pointer).toMatch(/^\/inputs\/params/);
    const good = about('n-2', { action: 'sum.pay', params: { amount: '1' } });
    expect((await stage.orchestrator.decide({ inputs: good }, 'n-2')).status).toBe(201);
  });
});

describe('applied', () => {
  test('201 with the body of the contract, in a database’s own time, and where it can be read', async () => {
    const reply = await stage.orchestrator.decide({ inputs: about('a-1') }, 'a-1');
    const uuid7 = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(reply.body).toEqual({
      decisionId: uuid7,
      key: 'a-1',
      keySource: 'client',
      contentKey: expect.stringMatching(/^dk_acme_[0-9a-f]{40}$/),
      state: 'completed',
      outcome: { status: 'applied', result: expect.any(Object) },
      effect: { effectId: expect.any(String), kind: 'note.add', status: 'applied' },
      ledgerEntryId: expect.any(String),
      recordedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
    });
    expect(reply.headers.get('content-type')).toMatch(/^application\/json/);
    expect(reply.headers.get('location')).toBe(`/v1/decisions/${reply.body.decisionId}`);
    const [stored] = await stage.database.query<{ at: string }>(
      `SELECT to_char(recorded_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at FROM ledger_entry WHERE idem_key = 'a-1'`,
    );
    expect(reply.body.recordedAt).toBe(stored?.at);
    expect((await stage.auditor.get(reply.headers.get('location') ?? '')).status).toBe(200);
  });

  test('Idempotency-Expires says until when the response is kept: the action’s retention after its recording', async () => {
    await stage.admin.put('/v1/actions/kept.briefly', { ...TRANSACTIONAL, responseRetentionDays: 3 });
    const reply = await stage.orchestrator.decide({ inputs: about('a-2', { action: 'kept.briefly' }) });
    const header = reply.headers.get('idempotency-expires') ?? '';
    expect(header).toMatch(/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/);
    const keptMs = Date.parse(header) - Date.parse(reply.body.recordedAt);
    expect(Math.abs(keptMs - 3 * DAY_MS)).toBeLessThanOrEqual(1_000);
  });
});

describe('something broke', () => {
  test('a handler that throws: 500 internal, nothing is kept, the retry runs', async () => {
    const asked = { inputs: about('b-1', { action: 'refund.create' }) };
    const before = await stage.tally();
    await stage.database.query('ALTER TABLE refund RENAME TO refund_away');
    const broken = await stage.orchestrator.decide(asked, 'b-1');
    await stage.database.query('ALTER TABLE refund_away RENAME TO refund');
    expect([broken.status, broken.body.code, broken.body.retryable]).toEqual([500, 'internal', true]);
    expect(await stage.tally()).toEqual(before);
    expect(await stage.database.count('SELECT count(*) FROM idempotency_record WHERE idem_key = $1', ['b-1'])).toBe(0);
    expect(await stage.database.count('SELECT count(*) FROM refund_case WHERE subject_id = $1', ['b-1'])).toBe(0);
    const retried = await stage.orchestrator.decide(asked, 'b-1');
    expect([retried.status, isReplay(retried)]).toEqual([201, false]);
  });
});
