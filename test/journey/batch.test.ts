import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { inputs, type Reply } from '../support/index.js';
import { setStage, TRANSACTIONAL, type Stage } from '../support/stage.js';

const ACTIONS = {
  'note.add': TRANSACTIONAL,
  'note.once': { ...TRANSACTIONAL, sameContent: 'refuse' },
  'case.close': { ...TRANSACTIONAL, uniqueness: 'subject' },
  'refund.create': TRANSACTIONAL,
  'sum.pay': { ...TRANSACTIONAL, paramsSchema: { type: 'object', required: ['amount'] } },
};
const BATCH_BYTES = 4 * 1024 * 1024;

let stage: Stage;
beforeAll(async () => {
  stage = await setStage({ actions: ACTIONS });
});
afterAll(() => stage?.clear());

interface Item {
  idempotencyKey?: string;
  inputs: unknown;
  note?: string;
}
const send = (decisions: unknown, headers: Record<string, string> = {}): Promise<Reply> =>
  stage.orchestrator.post('/v1/decisions/batch', { decisions }, headers);
const item = (id: string, key?: string, changes: Record<string, unknown> = {}): Item => ({
  ...(key === undefined ? {} : { idempotencyKey: key }),
  inputs: inputs({ subject: { type: 'case', id }, ...changes }),
});
/** Status and whether it was replayed, of each item. */
const shape = (reply: Reply): unknown[] =>
  reply.body.items.map((one: Reply & { replayed: boolean }) => [one.status, one.replayed]);
/** The same requests, one after the other on the single route. */
async function oneByOne(items: readonly Item[]): Promise<Reply[]> {
  const replies: Reply[] = [];
  for (const { idempotencyKey, ...body } of items) replies.push(await stage.orchestrator.decide(body, idempotencyKey));
  return replies;
}

test('answers 200 with an item for each decision, in order', async () => {
  const ids = ['z', 'a', 'm', 'b', 'y'];
  const reply = await send(ids.map((id) => item(`o-${id}`, `o-${id}`)));
  expect(reply.status).toBe(200);
  expect(Object.keys(reply.body)).toEqual(['items']);
  expect(reply.body.items.map((one: Reply) => one.body.key)).toEqual(ids.map((id) => `o-${id}`));
  for (const one of reply.body.items) expect(Object.keys(one).toSorted()).toEqual(['body', 'replayed', 'status']);
});

test('an item holds the very bytes that the single route gives, and the other way round', async () => {
  const items = [
    item('s-1', 's-1'),
    item('s-2'),
    item('s-3', 'a "key", with; \\signs', { params: { text: 'é "\\ \u2028', n: 1e21 } }),
    item('s-4', 's-4', { action: 'refund.create', params: { amount: '10.10', orderTotal: '10' } }),
    item('s-5', 's-5', { action: 'refund.create' }),
    item('s-6', 's-6', { action: 'case.close' }),
    item('s-6', 's-7', { action: 'case.close', policyVersion: 'pol-8' }),
  ];
  const batch = await send(items);
  for (const [index, one] of items.entries()) {
    const quoted = `"${(one.idempotencyKey ?? '').replaceAll(/["\\]/g, '\\$&')}"`;
    const single = await stage.orchestrator.decide(
      { inputs: one.inputs },
      one.idempotencyKey === undefined ? undefined : quoted,
    );
    expect(single.headers.get('idempotent-replayed')).toBe('true');
    expect(single.status).toBe(batch.body.items[index].status);
    expect(batch.text).toContain(`"body":${single.text}}`);
  }
  const singles = await oneByOne([item('s-8', 's-8'), item('s-9', 's-9', { action: 'refund.create' })]);
  const repeated = await send([item('s-8', 's-8'), item('s-9', 's-9', { action: 'refund.create' })]);
  for (const { text } of singles) expect(repeated.text).toContain(`{"status":201,"replayed":true,"body":${text}}`);
});

test('one bad item never fails its neighbours, and each has the problem of the single route', async () => {
  const before = await stage.tally();
  const { action: _action, ...withoutAction } = inputs();
  const bad: [Record<string, unknown>, number, string][] = [
    [{ ...item('b-1'), surplus: 1 }, 400, 'validation-failed'],
    [{ inputs: withoutAction }, 400, 'validation-failed'],
    [{ ...item('b-2'), note: 7 }, 400, 'validation-failed'],
    [{ ...item('b-2'), idempotencyKey: '' }, 400, 'invalid-idempotency-key'],
    [{ ...item('b-2'), idempotencyKey: ' k' }, 400, 'invalid-idempotency-key'],
    [{ ...item('b-2'), idempotencyKey: 'é' }, 400, 'invalid-idempotency-key'],
    [{ ...item('b-2'), idempotencyKey: 'x'.repeat(256) }, 400, 'invalid-idempotency-key'],
    [{ ...item('b-2'), idempotencyKey: '..' }, 400, 'invalid-idempotency-key'],
    [{ ...item('b-2'), idempotencyKey: 'dk_acme_0' }, 422, 'key-derivation-mismatch'],
    [{ ...item('b-3', undefined, { tenantId: 'globex' }) }, 403, 'tenant-mismatch'],
    [{ ...item('b-4', undefined, { action: 'no.such' }) }, 422, 'unknown-action'],
    [{ ...item('b-5', undefined, { action: 'sum.pay', params: {} }) }, 400, 'validation-failed'],
  ];
  const decisions = bad.flatMap(([one], index) => [item(`b-good-${index}`, `b-good-${index}`), one]);
  const { status, body } = await send(decisions);
  expect(status).toBe(200);
  expect(body.items.filter((_one: unknown, index: number) => index % 2 === 0).map((one: Reply) => one.status)).toEqual(
    bad.map(() => 201),
  );
  const problems = body.items.filter((_one: unknown, index: number) => index % 2 === 1);
  expect(problems.map((one: Reply) => [one.status, one.body.code])).toEqual(bad.map(([, code, name]) => [code, name]));
  for (const one of problems) {
    expect(one.replayed).toBe(false);
    if (one.body.code === 'validation-failed') expect(one.body.errors[0].pointer).toMatch(/^\//);
  }
  expect((await stage.tally()).entries).toBe(before.entries + bad.length);
});

test.each([null, 1, 'text', [], true])('an item that is no object (%j) is a bad item', async (odd) => {
  const reply = await send([item(`odd ${JSON.stringify(odd)}`), odd]);
  expect([reply.status, reply.body.items[0].status, reply.body.items[1].status]).toEqual([200, 201, 400]);
  expect(reply.body.items[1].body.code).toBe('validation-failed');
});

describe('what stands twice in one batch behaves as one request after the other', () => {
  const content = { params: { of: 'same' } };
  const CASES: [string, (id: string) => Item[], unknown[]][] = [
    ['one key', (id) => [item(id, `${id}-k`), item(id, `${id}-k`)], [201, 201]],
    ['no key', (id) => [item(id), item(id), item(id)], [201, 201, 201]],
    ['one key for two requests', (id) => [item(id, `${id}-k`), item(`${id}-b`, `${id}-k`)], [201, 422]],
    [
      'one key for two notes',
      (id) => [
        { ...item(id), note: 'a' },
        { ...item(id), note: 'b' },
      ],
      [201, 422],
    ],
    [
      'one key, then an unknown action',
      (id) => [item(id, `${id}-k`), item(id, `${id}-k`, { action: 'no.such' })],
      [201, 422],
    ],
    [
      'an unknown action, then the same key',
      (id) => [item(id, `${id}-k`, { action: 'no.such' }), item(id, `${id}-k`)],
      [422, 201],
    ],
    ['one content under two keys', (id) => [item(id, `${id}-z`), item(id, `${id}-a`)], [201, 201]],
    [
      'one content under two keys, then the second for another request',
      (id) => [item(id, `${id}-z`), item(id, `${id}-a`), item(`${id}-b`, `${id}-a`)],
      [201, 201, 422],
    ],
    [
      'refused content',
      (id) => [
        item(id, `${id}-z`, { action: 'note.once', ...content }),
        item(id, `${id}-a`, { action: 'note.once', ...content }),
      ],
      [201, 409],
    ],
    [
      'refused content, its key used twice',
      (id) => ['z', 'a', 'a'].map((key) => item(id, `${id}-${key}`, { action: 'note.once', ...content })),
      [201, 409, 409],
    ],
    [
      'refused content, its unused key then used for another request',
      (id) => [
        item(id, `${id}-z`, { action: 'note.once', ...content }),
        item(id, `${id}-a`, { action: 'note.once', ...content }),
        item(`${id}-b`, `${id}-a`, { action: 'note.once', ...content }),
      ],
      [201, 409, 201],
    ],
    [
      'a subject that is taken',
      (id) => ['z', 'a', 'm'].map((key) => item(id, `${id}-${key}`, { action: 'case.close', policyVersion: key })),
      [201, 409, 409],
    ],
    [
      'a refusal',
      (id) => ['z', 'a', 'a'].map((key) => item(id, `${id}-${key}`, { action: 'case.close', policyVersion: key })),
      [201, 409, 409],
    ],
    [
      'a handler',
      (id) =>
        ['a', 'a', 'b'].map((key) =>
          item(id, `${id}-${key}`, { action: 'refund.create', params: { amount: '6', orderTotal: '10', key } }),
        ),
      [201, 201, 409],
    ],
  ];
  test.each(CASES)('%s', async (name, build, statuses) => {
    const id = name.replaceAll(/[^a-z]+/g, '-');
    const batch = await send(build(`batch-${id}`));
    const singles = await oneByOne(build(`single-${id}`));
    expect(singles.map(({ status }) => status)).toEqual(statuses);
    expect(shape(batch)).toEqual(
      singles.map(({ status, headers }) => [status, headers.get('idempotent-replayed') === 'true']),
    );
    expect(batch.body.items.map((one: Reply) => one.body.code)).toEqual(singles.map(({ body }) => body.code));
    // Where a later item repeats an earlier one, it carries that one's decision.
    const firstWith = (ids: unknown[]): number[] => ids.map((one) => ids.indexOf(one));
    expect(firstWith(batch.body.items.map((one: Reply) => one.body.decisionId ?? one.body.winner?.decisionId))).toEqual(
      firstWith(singles.map(({ body }) => body.decisionId ?? body.winner?.decisionId)),
    );
  });
});

test('repeated, new, refused and handled items in one batch, and the whole batch again', async () => {
  await send([item('x-1', 'x-1'), item('x-2', 'x-2', { action: 'refund.create' })]);
  const decisions = [
    item('x-3', 'x-3'),
    item('x-1', 'x-1'),
    item('x-2', 'x-2', { action: 'refund.create' }),
    item('x-4', 'x-4', { action: 'refund.create', params: { amount: '2', orderTotal: '1' } }),
    item('x-5', 'x-1'),
    item('x-6', 'x-6', { action: 'no.such' }),
    item('x-7', 'x-7'),
  ];
  const before = await stage.tally();
  const first = await send(decisions);
  expect(shape(first)).toEqual([
    [201, false],
    [201, true],
    [201, true],
    [409, false],
    [422, false],
    [422, false],
    [201, false],
  ]);
  const after = await stage.tally();
  expect([after.entries - before.entries, after.effects - before.effects]).toEqual([3, 2]);
  const again = await send(decisions);
  const outcomes = [0, 1, 2, 3, 6];
  expect(outcomes.map((index) => again.body.items[index].body)).toEqual(
    outcomes.map((index) => first.body.items[index].body),
  );
  expect(outcomes.map((index) => again.body.items[index].replayed)).toEqual(outcomes.map(() => true));
  expect(await stage.tally()).toEqual(after);
});

describe('bounds', () => {
  test('500 items are taken, and taken again', async () => {
    const decisions = Array.from({ length: 500 }, (_, n) => item(`many-${n}`, `many-${n}`));
    const first = await send(decisions);
    const again = await send(decisions);
    expect(new Set(first.body.items.map((one: Reply) => one.status))).toEqual(new Set([201]));
    expect(again.body.items.map((one: Reply) => one.body)).toEqual(first.body.items.map((one: Reply) => one.body));
  });

  test.each([
    ['501 items', Array.from({ length: 501 }, (_, n) => item(`few-${n}`))],
    ['no item', []],
    ['no list', { 0: item('l-1') }],
    ['null', null],
  ])('%s: 400 that names the place, and nothing is recorded', async (_name, decisions) => {
    const before = await stage.tally();
    const reply = await send(decisions);
    expect([reply.status, reply.body.code, reply.body.errors[0].pointer]).toEqual([
      400,
      'validation-failed',
      '/decisions',
    ]);
    expect(await stage.tally()).toEqual(before);
  });

  test('a body of 4 MiB is taken, one byte more is 413', async () => {
    const text = JSON.stringify({ decisions: [item('big-1', 'big-1')] });
    const full = await stage.orchestrator.post('/v1/decisions/batch', text.padEnd(BATCH_BYTES));
    const over = await stage.orchestrator.post('/v1/decisions/batch', text.padEnd(BATCH_BYTES + 1));
    expect([full.status, full.body.items[0].status]).toEqual([200, 201]);
    expect([over.status, over.body.code]).toEqual([413, 'too-large']);
  });
});

test.each(['k1', '"k1"', '', 'a,b'])('an Idempotency-Key header (%j) fails the whole body', async (key) => {
  const before = await stage.tally();
  const reply = await send([item('header')], { 'idempotency-key': key });
  expect([reply.status, reply.body.code]).toEqual([400, 'invalid-idempotency-key']);
  expect(await stage.tally()).toEqual(before);
});

test.each([
  ['a name given twice', '{"a":1,"a":2}', '/decisions/1/inputs/params/a'],
  ['a number that would change', '{"a":[9007199254740993]}', '/decisions/1/inputs/params/a/0'],
])('bytes that are not strict JSON fail the whole body: %s', async (_name, params, pointer) => {
  const before = await stage.tally();
  const text = JSON.stringify({ decisions: [item('strict-1'), item('strict-2', undefined, { params: 'P' })] });
  const reply = await stage.orchestrator.post('/v1/decisions/batch', text.replace('"P"', params));
  expect([reply.status, reply.body.code, reply.body.errors[0].pointer]).toEqual([400, 'malformed-request', pointer]);
  expect(await stage.tally()).toEqual(before);
});
