import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Random, type Scene } from '../support/bad-case.js';
import { BAD_SHAPES } from '../support/bad-shapes.js';
import { inputs } from '../support/index.js';
import { rounds } from '../support/rounds.js';
import { rowCounts } from '../support/row-counts.js';
import { setStage, type Stage } from '../support/stage.js';

const ITEMS = rounds(400);
const MOST_AT_ONCE = 200;

let stage: Stage;
let scene: Scene;
let serial = 0;

beforeAll(async () => {
  stage = await setStage();
  const first = await stage.orchestrator.decide({ inputs: inputs() });
  scene = {
    tokens: { ...stage.tokens, operator: '' },
    decisionId: first.body.decisionId,
    key: first.body.key,
    contentKey: first.body.contentKey,
    credentialId: '',
  };
});

afterAll(async () => {
  await stage?.clear();
});

const sound = (): Record<string, unknown> => ({
  inputs: inputs({ subject: { type: 'neighbour', id: String((serial += 1)) } }),
});

/** The body that a variant would send alone. */
function bodyOf(bytes: Buffer): string {
  return bytes.subarray(bytes.indexOf('\r\n\r\n') + 4).toString('utf8');
}

/** Everything of a problem but the id of its request, and the places as the item has them. */
function verdictOf(status: number, problem: Record<string, unknown>): Record<string, unknown> {
  const { requestId: _requestId, ...rest } = problem;
  return { sent: status, ...rest };
}

const alone = BAD_SHAPES.filter(({ name }) => !name.includes('batch') && !name.includes('no object'));

describe('a bad item of a batch', () => {
  test.each(alone.map((variant) => [variant.name, variant] as const))(
    '%s: told what it would be told alone, and its neighbours are recorded',
    async (_name, variant) => {
      const random = new Random(`item ${variant.name}`);
      const made = Array.from({ length: Math.max(4, Math.ceil(ITEMS / alone.length)) }, () =>
        bodyOf(variant.make(random, scene).bytes),
      );
      // An item may have what the single route does not know: a key of its own.
      const bodies = made.filter((body) => !Object.hasOwn(JSON.parse(body), 'idempotencyKey'));
      const single = [];
      for (const body of bodies) {
        const reply = await stage.orchestrator.send('POST', '/v1/decisions', {
          body,
          headers: { 'content-type': 'application/json' },
        });
        single.push(verdictOf(reply.status, reply.body));
      }
      const before = await rowCounts(stage.database);
      const items = bodies.slice(0, MOST_AT_ONCE).flatMap((body) => [JSON.stringify(sound()), body]);
      const reply = await stage.orchestrator.send('POST', '/v1/decisions/batch', {
        body: `{"decisions":[${items.join(',')},${JSON.stringify(sound())}]}`,
        headers: { 'content-type': 'application/json' },
      });
      const after = await rowCounts(stage.database);
      const answers: { status: number; replayed: boolean; body: Record<string, unknown> }[] = reply.body.items;
      const bad = answers.filter((_, index) => index % 2 === 1);
      const good = answers.filter((_, index) => index % 2 === 0);

      expect(reply.status).toBe(200);
      expect(bad.map(({ status, body }) => verdictOf(status, body))).toEqual(single);
      expect(bad.every(({ replayed }) => !replayed)).toBe(true);
      expect(good.map(({ status }) => status)).toEqual(good.map(() => 201));
      expect(after['decision_record']).toBe((before['decision_record'] ?? 0) + good.length);
      expect(after['attempt']).toBe((before['attempt'] ?? 0) + good.length);
    },
  );

  test.each(['null', 'true', '1', '"x"', '[]', '[{}]'])(
    'an item that is %s: 400 validation-failed at its own root',
    async (item) => {
      const reply = await stage.orchestrator.send('POST', '/v1/decisions/batch', {
        body: `{"decisions":[${JSON.stringify(sound())},${item}]}`,
        headers: { 'content-type': 'application/json' },
      });

      expect(reply.body.items.map(({ status }: { status: number }) => status)).toEqual([201, 400]);
      expect(reply.body.items[1].body.code).toBe('validation-failed');
      expect(reply.body.items[1].body.errors).toEqual([{ pointer: '', detail: expect.any(String) }]);
    },
  );

  test.each([
    ['', 'invalid-idempotency-key'],
    [' ', 'invalid-idempotency-key'],
    [' k', 'invalid-idempotency-key'],
    ['k ', 'invalid-idempotency-key'],
    ['.', 'invalid-idempotency-key'],
    ['..', 'invalid-idempotency-key'],
    ['k'.repeat(256), 'invalid-idempotency-key'],
    ['é', 'invalid-idempotency-key'],
    ['\u{1F600}', 'invalid-idempotency-key'],
    ['a\nb', 'invalid-idempotency-key'],
    ['a\u007fb', 'invalid-idempotency-key'],
    [null, 'validation-failed'],
    [1, 'validation-failed'],
    [['k'], 'validation-failed'],
    [`dk_acme_${'0'.repeat(40)}`, 'key-derivation-mismatch'],
    ['dk_', 'key-derivation-mismatch'],
  ])('the key %j: %s, and its neighbour is recorded', async (idempotencyKey, code) => {
    const reply = await stage.orchestrator.post('/v1/decisions/batch', {
      decisions: [{ ...sound(), idempotencyKey }, sound()],
    });

    expect(reply.body.items[0].body.code).toBe(code);
    expect(reply.body.items[1].status).toBe(201);
  });

  test.each(['a b', 'a,b', '"quoted"', "it's", 'back\\slash', '~', '!', 'k'.repeat(255), '__proto__', 'constructor'])(
    'the key %s is taken as it is, and found again by it',
    async (idempotencyKey) => {
      const item = { ...sound(), idempotencyKey };
      const [first, again] = [
        await stage.orchestrator.post('/v1/decisions/batch', { decisions: [item] }),
        await stage.orchestrator.post('/v1/decisions/batch', { decisions: [item] }),
      ];
      const record = await stage.orchestrator.get(`/v1/idempotency-records/${encodeURIComponent(idempotencyKey)}`);

      expect(first.body.items[0].status).toBe(201);
      expect(again.body.items[0]).toEqual({ ...first.body.items[0], replayed: true });
      expect(record.body.key).toBe(idempotencyKey);
    },
  );
});
