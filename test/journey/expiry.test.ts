import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { inputs, type Reply } from '../support/index.js';
import { setStage, TRANSACTIONAL, until, type Stage, type Tally } from '../support/stage.js';

const ACTIONS = {
  'note.add': TRANSACTIONAL,
  'note.once': { ...TRANSACTIONAL, sameContent: 'refuse' },
  'case.close': { ...TRANSACTIONAL, uniqueness: 'subject' },
  'refund.create': TRANSACTIONAL,
};
const asked = (action: string, id: string, changes: Record<string, unknown> = {}): Record<string, unknown> =>
  inputs({ action, subject: { type: 'case', id }, ...changes });

/** Every kind of recorded answer, by the key that it was given under; none for the content key. */
const REQUESTS: readonly (readonly [name: string, key: string | undefined, body: Record<string, unknown>])[] = [
  ['applied', 'e-applied', { inputs: asked('note.add', 'e-1'), note: 'n' }],
  ['applied under its content key', undefined, { inputs: asked('note.add', 'e-2') }],
  ['applied under a key that needs escapes', '"a \\"b\\\\"', { inputs: asked('note.add', 'e-3') }],
  ['applied by a handler', 'e-handler', { inputs: asked('refund.create', 'e-4', { params: { amount: '0.30' } }) }],
  ['the first of one content', 'e-first', { inputs: asked('note.add', 'e-5') }],
  ['bound to another key’s decision', 'e-bound', { inputs: asked('note.add', 'e-5'), note: 'other words' }],
  ['a subject taken', 'e-winner', { inputs: asked('case.close', 'e-6') }],
  ['refused: the subject is taken', 'e-loser', { inputs: asked('case.close', 'e-6', { policyVersion: 'pol-8' }) }],
  ['bound to a refusal', 'e-bound-loser', { inputs: asked('case.close', 'e-6', { policyVersion: 'pol-8' }) }],
  [
    'refused by a handler',
    'e-refused',
    { inputs: asked('refund.create', 'e-7', { params: { amount: '2', orderTotal: '1' } }) },
  ],
];
const HEADERS = ['content-type', 'location', 'idempotency-expires'];

let stage: Stage;
const firsts = new Map<string, Reply>();
let tally: Tally;

beforeAll(async () => {
  stage = await setStage({
    env: { RESPONSE_RETENTION_OVERRIDE_SECONDS: '1', PRUNE_INTERVAL_SECONDS: '1' },
    actions: ACTIONS,
  });
  for (const [name, key, body] of REQUESTS) firsts.set(name, await stage.orchestrator.decide(body, key));
  tally = await stage.tally();
  await until(
    () => stage.database.count('SELECT count(*) FROM idempotency_record'),
    (kept) => kept === 0,
  );
});
afterAll(() => stage?.clear());

test('pruning takes every stored response and no identity', async () => {
  expect(await stage.database.count('SELECT count(*) FROM idempotency_record')).toBe(0);
  expect(await stage.tally()).toEqual(tally);
  expect([...firsts.values()].map(({ status }) => status)).toEqual([201, 201, 201, 201, 201, 201, 201, 409, 409, 409]);
});

describe.each(REQUESTS)('%s', (name, key, body) => {
  test('is answered with the same status, headers and bytes, as a replay, again and again', async () => {
    const first = firsts.get(name);
    for (let n = 0; n < 2; n += 1) {
      const late = await stage.orchestrator.decide(body, key);
      expect([late.status, late.text]).toEqual([first?.status, first?.text]);
      expect(HEADERS.map((header) => late.headers.get(header))).toEqual(
        HEADERS.map((header) => first?.headers.get(header)),
      );
      expect(late.headers.get('idempotent-replayed')).toBe('true');
    }
    expect(await stage.tally()).toEqual(tally);
  });

  test('is 422 for another fingerprint, with the decision that stands', async () => {
    const reply = await stage.orchestrator.decide({ ...body, note: 'another note' }, key);
    expect([reply.status, reply.body.code]).toEqual([422, 'fingerprint-mismatch']);
    expect(reply.body).toMatchObject({ decisionId: firsts.get(name)?.body.decisionId, state: 'completed' });
    expect(await stage.tally()).toEqual(tally);
  });

  test('its record says expired, with its fingerprint and decision', async () => {
    const read = await stage.auditor.get(`/v1/decisions/${firsts.get(name)?.body.decisionId}`);
    const plain = key?.startsWith('"') === true ? 'a "b\\' : (key ?? firsts.get(name)?.body.key);
    const record = await stage.auditor.get(`/v1/idempotency-records/${encodeURIComponent(plain)}`);
    expect(record.body).toEqual({
      key: plain,
      keySource: key === undefined ? 'content' : 'client',
      status: 'expired',
      fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/),
      decisionId: firsts.get(name)?.body.decisionId,
      lockedUntil: null,
      createdAt: expect.stringMatching(/\.\d{6}Z$/),
      expiresAt: expect.stringMatching(/\.\d{6}Z$/),
    });
    if (!name.startsWith('bound')) expect(record.body.fingerprint).toBe(read.body.fingerprint);
  });
});

test('last night’s batch, sent again: nothing happens twice, all answers are as they were', async () => {
  const decisions = REQUESTS.map(([, key, body]) => ({
    ...body,
    ...(key === undefined ? {} : { idempotencyKey: key.startsWith('"') ? 'a "b\\' : key }),
  }));
  const reply = await stage.orchestrator.post('/v1/decisions/batch', { decisions });
  expect(reply.body.items.map((one: { status: number; replayed: boolean }) => [one.status, one.replayed])).toEqual(
    [...firsts.values()].map(({ status }) => [status, true]),
  );
  for (const { text } of firsts.values()) expect(reply.text).toContain(`"body":${text}}`);
  expect(await stage.tally()).toEqual(tally);
});

test('new keys still meet what expired: the content, and the subject that is taken', async () => {
  const same = await stage.orchestrator.decide({ inputs: asked('note.add', 'e-1') }, 'late-1');
  expect([same.status, same.text, same.headers.get('idempotent-replayed')]).toEqual([
    201,
    firsts.get('applied')?.text,
    'true',
  ]);
  const winner = firsts.get('a subject taken')?.body;
  const taken = await stage.orchestrator.decide({ inputs: asked('case.close', 'e-6', { policyVersion: 'pol-9' }) });
  expect([taken.status, taken.body.code]).toEqual([409, 'duplicate-subject']);
  expect(taken.body.winner).toEqual({
    decisionId: winner.decisionId,
    key: winner.key,
    recordedAt: winner.recordedAt,
  });
});

test('twenty late retries at one instant are twenty replays', async () => {
  const before = await stage.tally();
  const replies = await Promise.all(
    Array.from({ length: 20 }, () => stage.orchestrator.decide({ inputs: asked('note.add', 'e-2') })),
  );
  expect(new Set(replies.map(({ status, text }) => `${status} ${text}`))).toEqual(
    new Set([`201 ${firsts.get('applied under its content key')?.text}`]),
  );
  expect(await stage.tally()).toEqual(before);
});
