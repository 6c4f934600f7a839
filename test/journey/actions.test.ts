import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Client, inputs, type Reply, type Service } from '../support/index.js';
import { setStage, TRANSACTIONAL, until, type Stage } from '../support/stage.js';

let stage: Stage;
let elsewhere: Service;
beforeAll(async () => {
  stage = await setStage({ actions: {} });
  elsewhere = await stage.addService();
});
afterAll(() => stage?.clear());

const put = (action: string, rules: unknown): Promise<Reply> => stage.admin.put(`/v1/actions/${action}`, rules);
const decide = (action: string, id: string, params: unknown = {}): Promise<Reply> =>
  stage.orchestrator.decide({ inputs: inputs({ action, subject: { type: 'case', id }, params }) });

describe('putting an action', () => {
  test('201 with the defaults filled in', async () => {
    const reply = await put('first.one', TRANSACTIONAL);
    expect([reply.status, reply.body]).toEqual([
      201,
      {
        action: 'first.one',
        version: 1,
        execution: 'transactional',
        uniqueness: 'none',
        sameContent: 'replay',
        responseRetentionDays: 90,
        leaseSeconds: 30,
        updatedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
      },
    ]);
  });

  test('what is sent is what is answered and read', async () => {
    const rules = {
      execution: 'transactional',
      uniqueness: 'subject-and-period',
      sameContent: 'allow',
      paramsSchema: { type: 'object', properties: { z: { const: 1e21 }, a: { type: 'string' } } },
      responseRetentionDays: 3650,
      leaseSeconds: 3600,
    };
    const reply = await put('whole', rules);
    expect([reply.status, reply.body]).toMatchObject([201, { ...rules, action: 'whole', version: 1 }]);
    for (const reader of [stage.admin, stage.orchestrator, stage.auditor]) {
      expect((await reader.get('/v1/actions/whole')).body).toEqual(reply.body);
      expect((await reader.get('/v1/actions')).body.items).toContainEqual(reply.body);
    }
  });

  test('an identical one is 200 and makes no version', async () => {
    const first = await put('same.twice', { ...TRANSACTIONAL, uniqueness: 'subject' });
    const again = await put('same.twice', { uniqueness: 'subject', ...TRANSACTIONAL });
    expect([first.status, again.status]).toEqual([201, 200]);
    expect(again.body).toEqual(first.body);
  });

  test('a change is 200 and makes the next version; the list has the latest only', async () => {
    await put('changing', TRANSACTIONAL);
    const second = await put('changing', { ...TRANSACTIONAL, sameContent: 'refuse' });
    const third = await put('changing', TRANSACTIONAL);
    expect([second.status, second.body.version, second.body.sameContent]).toEqual([200, 2, 'refuse']);
    expect([third.status, third.body.version, third.body.sameContent]).toEqual([200, 3, 'replay']);
    const { items } = (await stage.auditor.get('/v1/actions')).body;
    expect(items.filter((one: { action: string }) => one.action === 'changing')).toEqual([third.body]);
  });

  test('four changes at one instant make four versions, and none is lost', async () => {
    const replies = await Promise.all(
      Array.from({ length: 4 }, (_, n) => put('contended', { ...TRANSACTIONAL, responseRetentionDays: n + 1 })),
    );
    expect(replies.map(({ body }) => body.version).toSorted()).toEqual([1, 2, 3, 4]);
    expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 200, 200, 201]);
  });

  test('the actions of a tenant are its own', async () => {
    const globex = await stage.addTenant('globex');
    await put('mine', TRANSACTIONAL);
    expect((await globex.auditor.get('/v1/actions')).body).toEqual({ items: [] });
    const foreign = await globex.auditor.get('/v1/actions/mine');
    expect([foreign.status, foreign.body.code]).toEqual([404, 'not-found']);
    const made = await globex.admin.put('/v1/actions/mine', TRANSACTIONAL);
    expect([made.status, made.body.version]).toEqual([201, 1]);
  });

  test('one that is not there is 404', async () => {
    const reply = await stage.auditor.get('/v1/actions/no.such');
    expect([reply.status, reply.body.code]).toEqual([404, 'not-found']);
  });
});

describe('bounds', () => {
  test.each(['a', 'a1', 'a-b', 'a_b', 'a.b', 'a.b1', 'a.b_-', 'refund.create', 'x'.repeat(64)])(
    'a name may be %s',
    async (name) => {
      expect((await put(name, TRANSACTIONAL)).status).toBe(201);
      expect((await decide(name, 'named')).status).toBe(201);
    },
  );

  test.each(['A', '1a', '_a', '-a', '.a', 'a.', 'a..b', 'a.1', 'a._', 'a b', 'a%2Fb', 'é', 'a.B', 'x'.repeat(65)])(
    'a name may not be %s',
    async (name) => {
      const reply = await put(encodeURIComponent(decodeURIComponent(name)), TRANSACTIONAL);
      expect(reply.status).toBeGreaterThanOrEqual(400);
      expect(reply.status).toBeLessThan(500);
      const { items } = (await stage.auditor.get('/v1/actions')).body;
      expect(items.map((one: { action: string }) => one.action)).not.toContain(decodeURIComponent(name));
    },
  );

  test.each([1, 90, 3650])('a response may be kept for %i days', async (responseRetentionDays) => {
    expect((await put(`days.d${responseRetentionDays}`, { ...TRANSACTIONAL, responseRetentionDays })).status).toBe(201);
  });

  test.each([
    ['no execution', {}, '/execution'],
    ['an unknown execution', { execution: 'eventual' }, '/execution'],
    ['an execution that is no text', { execution: ['transactional'] }, '/execution'],
    ['an unknown uniqueness', { ...TRANSACTIONAL, uniqueness: 'period' }, '/uniqueness'],
    ['an unknown sameContent', { ...TRANSACTIONAL, sameContent: 'ignore' }, '/sameContent'],
    ['null for a default', { ...TRANSACTIONAL, uniqueness: null }, '/uniqueness'],
    ['0 days', { ...TRANSACTIONAL, responseRetentionDays: 0 }, '/responseRetentionDays'],
    ['3651 days', { ...TRANSACTIONAL, responseRetentionDays: 3651 }, '/responseRetentionDays'],
    ['half a day', { ...TRANSACTIONAL, responseRetentionDays: 1.5 }, '/responseRetentionDays'],
    ['days as text', { ...TRANSACTIONAL, responseRetentionDays: '90' }, '/responseRetentionDays'],
    ['a schema that is text', { ...TRANSACTIONAL, paramsSchema: 'object' }, '/paramsSchema'],
    ['a schema that is a list', { ...TRANSACTIONAL, paramsSchema: [] }, '/paramsSchema'],
    ['a schema of an unknown type', { ...TRANSACTIONAL, paramsSchema: { type: 'money' } }, '/paramsSchema'],
    ['a schema with a bad pattern', { ...TRANSACTIONAL, paramsSchema: { pattern: '(' } }, '/paramsSchema'],
    ['a schema that points nowhere', { ...TRANSACTIONAL, paramsSchema: { $ref: '#/$defs/none' } }, '/paramsSchema'],
    ['an unknown member', { ...TRANSACTIONAL, retries: 3 }, '/retries'],
    ['a version', { ...TRANSACTIONAL, version: 7 }, '/version'],
  ])('%s: 400 that names the place, and no action is made', async (name, rules, pointer) => {
    const action = `bad.${name.replaceAll(/[^a-z]/gi, '-').toLowerCase()}`;
    const reply = await put(action, rules);
    expect([reply.status, reply.body.code]).toEqual([400, 'validation-failed']);
    expect(reply.body.errors.map((one: { pointer: string }) => one.pointer)).toContainEqual(
      expect.stringMatching(new RegExp(`^${pointer}(/|$)`)),
    );
    expect((await stage.auditor.get(`/v1/actions/${action}`)).status).toBe(404);
  });
});

describe('a schema for params', () => {
  const SCHEMA = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $defs: { money: { type: 'string', pattern: '^[0-9]+\\.[0-9]{2}$' } },
    type: 'object',
    required: ['amount'],
    properties: {
      amount: { $ref: '#/$defs/money' },
      route: { prefixItems: [{ type: 'string' }, { type: 'integer' }], items: false },
      when: { type: 'string', format: 'date' },
    },
    unevaluatedProperties: false,
  };
  beforeAll(() => put('checked', { ...TRANSACTIONAL, paramsSchema: SCHEMA }));

  test.each([
    ['the least', { amount: '1.00' }],
    ['all of it', { amount: '1.00', route: ['a', 1], when: '2026-02-28' }],
  ])('takes %s', async (name, params) => {
    expect((await decide('checked', name, params)).status).toBe(201);
  });

  test.each([
    ['a missing member', {}, '/inputs/params/amount'],
    ['a value of another form', { amount: '1.0' }, '/inputs/params/amount'],
    ['a tuple’s second place', { amount: '1.00', route: ['a', 'b'] }, '/inputs/params/route/1'],
    ['a tuple that is too long', { amount: '1.00', route: ['a', 1, 2] }, '/inputs/params/route'],
    ['a member that nothing evaluated', { amount: '1.00', 'x/y~z': 1 }, '/inputs/params/x~1y~0z'],
  ])('refuses %s and names the place', async (name, params, pointer) => {
    const reply = await decide('checked', name, params);
    expect([reply.status, reply.body.code]).toEqual([400, 'validation-failed']);
    expect(reply.body.errors[0].pointer).toBe(pointer);
  });
});

describe('a change', () => {
  test('holds at once here, and decisions keep the version they were made under', async () => {
    await put('moving', TRANSACTIONAL);
    const old = await decide('moving', 'v-1');
    await put('moving', { ...TRANSACTIONAL, paramsSchema: { required: ['amount'] } });
    expect((await decide('moving', 'v-2')).status).toBe(400);
    const recent = await decide('moving', 'v-2', { amount: '1' });
    const versions = [];
    for (const { body } of [old, recent])
      versions.push((await stage.auditor.get(`/v1/decisions/${body.decisionId}`)).body.actionVersion);
    expect(versions).toEqual([1, 2]);
  });

  test('holds within a second elsewhere, for new actions and for new rules', async () => {
    const there = new Client(elsewhere.url, stage.tokens.orchestrator);
    let tries = 0;
    const decideThere = (): Promise<Reply> =>
      there.decide({ inputs: inputs({ action: 'far.away', subject: { type: 'case', id: `f-${(tries += 1)}` } }) });
    expect((await decideThere()).body.code).toBe('unknown-action');
    await put('far.away', TRANSACTIONAL);
    expect((await until(decideThere, ({ status }) => status === 201, 1_000)).status).toBe(201);
    await put('far.away', { ...TRANSACTIONAL, paramsSchema: { required: ['more'] } });
    expect((await until(decideThere, ({ status }) => status === 400, 1_000)).status).toBe(400);
  });
});
