import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createHash } from 'node:crypto';
import { describeVectors, vectorBytes } from '../law/vectors.js';
import { claim } from '../support/leases.js';
import { inputs, type Reply } from '../support/index.js';
import { migrationFiles } from '../support/schema.js';
import { putActions, setStage, type Cast, type Stage } from '../support/stage.js';

interface Vector {
  readonly name: string;
  readonly inputs: { readonly tenantId: string; readonly action: string };
  readonly key: string;
  readonly downstream: Readonly<Record<'hex40' | 'hex32' | 'uuid4', string>>;
}

const OUTSIDE = { execution: 'caller' };
const RESULT = { status: 'applied', result: {} };
const FORMS = ['hex40', 'hex32', 'uuid4'] as const;

let stage: Stage;
beforeAll(async () => {
  stage = await setStage({ actions: { 'pay.send': OUTSIDE, 'pay.again': { ...OUTSIDE, sameContent: 'allow' } } });
  await putActions(stage.admin, { 'note.add': { execution: 'transactional' } });
});
afterAll(() => stage?.clear());

let subjects = 0;
const about = (action: string): { inputs: Record<string, unknown> } => {
  subjects += 1;
  return { inputs: inputs({ action, subject: { type: 'case', id: `D-${subjects}` } }) };
};

const found = async ({ auditor }: Cast, downstreamKey: string): Promise<string[]> => {
  const reply: Reply = await auditor.get(`/v1/decisions?downstreamKey=${downstreamKey}`);
  expect(reply.status).toBe(200);
  return reply.body.items.map((row: { decisionId: string }) => row.decisionId);
};

describeVectors('the published downstream keys, over HTTP', () => {
  const { decision: vectors }: { decision: Vector[] } = JSON.parse(vectorBytes('keys/keys.json').toString('utf8'));

  test('stand in the claim and in what is read of it, and each form finds its decision, and no other', async () => {
    const casts: Record<string, Cast> = { acme: stage };
    const claimed = new Map<string, string>();
    for (const vector of vectors) {
      const { tenantId, action } = vector.inputs;
      const cast = (casts[tenantId] ??= await stage.addTenant(tenantId));
      await putActions(cast.admin, { [action]: OUTSIDE });
      const read = async (): Promise<unknown> =>
        (await cast.orchestrator.get(`/v1/decisions/${claimed.get(vector.key)}`)).body.downstreamKeys;
      // Two spellings of one content are one decision: the second has nothing to claim.
      if (!claimed.has(vector.key)) {
        const held = await claim(cast.orchestrator, { inputs: vector.inputs });
        const { reply, decisionId } = held;
        expect([vector.name, reply.body.downstreamKeys]).toEqual([
          vector.name,
          { key: vector.key, ...vector.downstream },
        ]);
        claimed.set(vector.key, decisionId);
        expect(await read()).toEqual(reply.body.downstreamKeys);
        await held.complete(RESULT);
      }
      expect(await read()).toEqual({ key: vector.key, ...vector.downstream });
      for (const form of FORMS)
        expect([vector.name, form, await found(cast, vector.downstream[form])]).toEqual([
          vector.name,
          form,
          [claimed.get(vector.key)],
        ]);
    }
    expect(claimed.size).toBeGreaterThan(10);
  });
});

describe('the downstream keys of a client key', () => {
  // Made with Python's hashlib, over b'acme\x1forder-8812-refund-1'.
  const KEYS = {
    key: 'order-8812-refund-1',
    hex40: '7fb42130e7cce07d89e8d42077ba495a374dc59b',
    hex32: '7fb42130e7cce07d89e8d42077ba495a',
    uuid4: '7fb42130-e7cc-407d-89e8-d42077ba495a',
  };

  test('are the published ones, before the effect and after it, and each finds the decision', async () => {
    const held = await claim(stage.orchestrator, about('pay.send'), KEYS.key);
    const read = async (): Promise<unknown> =>
      (await stage.auditor.get(`/v1/decisions/${held.decisionId}`)).body.downstreamKeys;
    expect(held.reply.body.downstreamKeys).toEqual(KEYS);
    for (const form of FORMS) expect(await found(stage, KEYS[form])).toEqual([held.decisionId]);
    expect(await read()).toEqual(KEYS);
    await held.complete(RESULT);
    expect(await read()).toEqual(KEYS);
    for (const form of FORMS) expect(await found(stage, KEYS[form])).toEqual([held.decisionId]);
  });

  test.each(['a', "k'1", '"quoted', 'back\\slash', 'x'.repeat(255), `${'%'.repeat(3)}~!`])(
    '%s are made the same way',
    async (key) => {
      const { reply, decisionId } = await claim(stage.orchestrator, about('pay.again'), JSON.stringify(key));
      const hex = createHash('sha256').update(`acme\u001f${key}`).digest('hex');
      expect(reply.body.downstreamKeys).toMatchObject({ key, hex40: hex.slice(0, 40), hex32: hex.slice(0, 32) });
      for (const form of FORMS) expect(await found(stage, reply.body.downstreamKeys[form])).toEqual([decisionId]);
    },
  );

  test('are others in another tenant, and find nothing there', async () => {
    const other = await stage.addTenant('initech');
    await putActions(other.admin, { 'pay.send': OUTSIDE });
    const body = about('pay.send');
    const [mine, theirs] = [
      await claim(stage.orchestrator, body, 'in-two-tenants'),
      await claim(other.orchestrator, body, 'in-two-tenants'),
    ];
    for (const form of FORMS) {
      expect(theirs.reply.body.downstreamKeys[form]).not.toBe(mine.reply.body.downstreamKeys[form]);
      expect(await found(other, mine.reply.body.downstreamKeys[form])).toEqual([]);
    }
  });
});

describe('the length of a form', () => {
  test.each([
    ['a content key', undefined],
    ['the longest client key', 'l'.repeat(255)],
  ])('is 40, 32 and 36, for %s: a limit of 45 or 40 takes hex40, one of 36 uuid4, one of 32 hex32', async (_, key) => {
    const { reply } = await claim(stage.orchestrator, about('pay.send'), key);
    const { hex40, hex32, uuid4 } = reply.body.downstreamKeys;
    expect([hex40, hex32, uuid4].map((form: string) => form.length)).toEqual([40, 32, 36]);
  });

  test('as it is, is what the key has: up to 255 for a client key; 44 and the name of the tenant for a content key', async () => {
    const { reply } = await claim(stage.orchestrator, about('pay.send'));
    expect(reply.body.downstreamKeys.key).toHaveLength(44 + 'acme'.length);
    const shortest = await stage.addTenant('a');
    await putActions(shortest.admin, { 'pay.send': OUTSIDE });
    const short = await claim(shortest.orchestrator, about('pay.send'));
    expect(short.reply.body.downstreamKeys.key).toHaveLength(45);
  });
});

describe('a search by a downstream key', () => {
  test('is exact: a form of the same first digits, or with another version or variant, finds nothing', async () => {
    const { reply } = await claim(stage.orchestrator, about('pay.send'), 'exact');
    const { hex40, hex32 } = reply.body.downstreamKeys;
    const flipped = (hex: string, place: number): string =>
      hex.slice(0, place) + (Number.parseInt(hex.charAt(place), 16) ^ 8).toString(16) + hex.slice(place + 1);
    for (const wrong of [flipped(hex40, 39), flipped(hex40, 12), flipped(hex32, 12), flipped(hex32, 16)])
      expect(await found(stage, wrong)).toEqual([]);
  });

  test('joins the other filters, and finds no decision whose effect is in this database', async () => {
    const held = await claim(stage.orchestrator, about('pay.send'), 'joins');
    const { uuid4 } = held.reply.body.downstreamKeys;
    const { body } = await stage.auditor.get(`/v1/decisions?downstreamKey=${uuid4}&state=completed`);
    expect(body.items).toEqual([]);
    const inside = await stage.orchestrator.decide(about('note.add'));
    const { body: read } = await stage.auditor.get(`/v1/decisions/${inside.body.decisionId}`);
    for (const form of FORMS) expect(await found(stage, read.downstreamKeys[form])).toEqual([]);
  });

  test('finds what was there before such a search was: the migration fills it in', async () => {
    const held = await claim(stage.orchestrator, about('pay.send'), 'from-before');
    await stage.database.query('UPDATE decision_record SET downstream_uuid4 = NULL');
    expect(await found(stage, held.reply.body.downstreamKeys.hex40)).toEqual([]);
    const { sql = '' } = migrationFiles().find(({ file }) => file.endsWith('-downstream-key.sql')) ?? {};
    await stage.database.query(sql.slice(sql.indexOf('DO $$')));
    expect(await found(stage, held.reply.body.downstreamKeys.hex40)).toEqual([held.decisionId]);
  });

  test.each(['x', 'A'.repeat(40), 'a'.repeat(41), 'order-8812-refund-1', '7fb42130-e7cc-507d-89e8-d42077ba495a'])(
    'by %s, which is no form, is 400',
    async (text) => {
      const reply = await stage.auditor.get(`/v1/decisions?downstreamKey=${text}`);
      expect([reply.status, reply.body.code, reply.body.errors[0].pointer]).toEqual([
        400,
        'validation-failed',
        'downstreamKey',
      ]);
    },
  );
});
