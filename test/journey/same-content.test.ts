import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { inputs, type Reply } from '../support/index.js';
import { setStage, TRANSACTIONAL, type Stage } from '../support/stage.js';

const ACTIONS = {
  'note.add': TRANSACTIONAL,
  'note.once': { ...TRANSACTIONAL, sameContent: 'refuse' },
  'note.often': { ...TRANSACTIONAL, sameContent: 'allow' },
  'case.close': { ...TRANSACTIONAL, uniqueness: 'subject' },
  'refund.create': { ...TRANSACTIONAL, sameContent: 'refuse' },
};

let stage: Stage;
beforeAll(async () => {
  stage = await setStage({ actions: ACTIONS });
});
afterAll(() => stage?.clear());

const asked = (action: string, id: string, changes: Record<string, unknown> = {}): Record<string, unknown> =>
  inputs({ action, subject: { type: 'case', id }, ...changes });
const isReplay = (reply: Reply): boolean => reply.headers.get('idempotent-replayed') === 'true';

describe('sameContent: replay', () => {
  test('another key is answered as a replay of the first decision: its body, its key', async () => {
    const before = await stage.tally();
    const first = await stage.orchestrator.decide({ inputs: asked('note.add', 'p-1') }, 'p-1-a');
    const other = await stage.orchestrator.decide({ inputs: asked('note.add', 'p-1') }, 'p-1-b');
    expect([other.status, other.text, isReplay(other)]).toEqual([201, first.text, true]);
    for (const header of ['location', 'idempotency-expires', 'content-type'])
      expect(other.headers.get(header)).toBe(first.headers.get(header));
    expect(await stage.tally()).toEqual({
      effects: before.effects + 1,
      entries: before.entries + 1,
      decisions: before.decisions + 1,
    });
  });

  test('the new key is bound: its record shows the first’s decision, it replays, and with another request it is 422', async () => {
    const first = await stage.orchestrator.decide({ inputs: asked('note.add', 'p-2') }, 'p-2-a');
    await stage.orchestrator.decide({ inputs: asked('note.add', 'p-2') }, 'p-2-b');
    const record = await stage.orchestrator.get('/v1/idempotency-records/p-2-b');
    expect(record.body).toMatchObject({
      key: 'p-2-b',
      keySource: 'client',
      status: 'completed',
      decisionId: first.body.decisionId,
    });
    const again = await stage.orchestrator.decide({ inputs: asked('note.add', 'p-2') }, 'p-2-b');
    expect([again.status, again.text, isReplay(again)]).toEqual([201, first.text, true]);
    const reused = await stage.orchestrator.decide({ inputs: asked('note.add', 'p-2-other') }, 'p-2-b');
    expect([reused.status, reused.body.code, reused.body.decisionId]).toEqual([
      422,
      'fingerprint-mismatch',
      first.body.decisionId,
    ]);
  });

  test('notes are not compared with the first’s, but bind the new key', async () => {
    const first = await stage.orchestrator.decide({ inputs: asked('note.add', 'p-3'), note: 'one' }, 'p-3-a');
    const other = await stage.orchestrator.decide({ inputs: asked('note.add', 'p-3'), note: 'two' }, 'p-3-b');
    expect(other.text).toBe(first.text);
    const again = await stage.orchestrator.decide({ inputs: asked('note.add', 'p-3'), note: 'two' }, 'p-3-b');
    const changed = await stage.orchestrator.decide({ inputs: asked('note.add', 'p-3'), note: 'one' }, 'p-3-b');
    expect([again.status, changed.status]).toEqual([201, 422]);
  });

  test.each([
    ['the content key after a client key', 'p-4-client', undefined],
    ['a client key after the content key', undefined, 'p-5-client'],
  ])('%s', async (name, firstKey, otherKey) => {
    const first = await stage.orchestrator.decide({ inputs: asked('note.add', name) }, firstKey);
    const other = await stage.orchestrator.decide({ inputs: asked('note.add', name) }, otherKey);
    expect([first.status, other.status, other.text, isReplay(other)]).toEqual([201, 201, first.text, true]);
    const record = await stage.orchestrator.get(`/v1/idempotency-records/${otherKey ?? first.body.contentKey}`);
    expect(record.body).toMatchObject({
      decisionId: first.body.decisionId,
      keySource: otherKey === undefined ? 'content' : 'client',
    });
  });

  test('a refusal is replayed to another key as well', async () => {
    await stage.orchestrator.decide({ inputs: asked('case.close', 'p-6') });
    const late = asked('case.close', 'p-6', { policyVersion: 'pol-8' });
    const refused = await stage.orchestrator.decide({ inputs: late }, 'p-6-a');
    const other = await stage.orchestrator.decide({ inputs: late }, 'p-6-b');
    expect([refused.status, other.status, other.text, isReplay(other)]).toEqual([409, 409, refused.text, true]);
  });

  test('is visible as an attempt of the first decision', async () => {
    const first = await stage.orchestrator.decide({ inputs: asked('note.add', 'p-7') }, 'p-7-a');
    await stage.orchestrator.decide({ inputs: asked('note.add', 'p-7') }, 'p-7-b');
    await stage.orchestrator.decide({ inputs: asked('note.add', 'p-7') }, 'p-7-b');
    const read = await stage.auditor.get(`/v1/decisions/${first.body.decisionId}`);
    expect(read.body.attempts).toEqual({ total: 3, byDisposition: { created: 1, replayed: 1, same_content: 1 } });
  });

  test('two partial refunds of one amount that are both meant differ by a reference, and both are applied', async () => {
    await stage.admin.put('/v1/actions/refund.part', TRANSACTIONAL);
    const part = (reference: string): Record<string, unknown> =>
      asked('refund.part', 'p-8', { params: { amount: '5.00', currency: 'EUR', reference } });
    const [one, two] = [
      await stage.orchestrator.decide({ inputs: part('parcel-1') }),
      await stage.orchestrator.decide({ inputs: part('parcel-2') }),
    ];
    expect([one.status, two.status, isReplay(two)]).toEqual([201, 201, false]);
    expect(one.body.decisionId).not.toBe(two.body.decisionId);
  });
});

describe.each(['note.once', 'refund.create'])('sameContent: refuse, for %s', (action) => {
  test('409 same-content with the winner; no decision is recorded, only an attempt, and the key stays unused', async () => {
    const first = await stage.orchestrator.decide({ inputs: asked(action, 'q-1') }, `${action}-1-a`);
    const before = await stage.tally();
    const other = await stage.orchestrator.decide({ inputs: asked(action, 'q-1'), note: 'n' }, `${action}-1-b`);
    expect([other.status, other.body.code, other.body.retryable]).toEqual([409, 'same-content', false]);
    const { decisionId, key, recordedAt } = first.body;
    expect(other.body.winner).toEqual({ decisionId, key, recordedAt });
    expect(await stage.tally()).toEqual(before);
    expect((await stage.orchestrator.get(`/v1/idempotency-records/${action}-1-b`)).status).toBe(404);
    const free = await stage.orchestrator.decide({ inputs: asked(action, 'q-1-other') }, `${action}-1-b`);
    expect([free.status, isReplay(free)]).toEqual([201, false]);
    const read = await stage.auditor.get(`/v1/decisions/${decisionId}`);
    expect(read.body.attempts.byDisposition).toEqual({ created: 1, same_content: 1 });
  });

  test('the first key itself still replays, and the second is refused each time', async () => {
    const first = await stage.orchestrator.decide({ inputs: asked(action, 'q-2') }, `${action}-2-a`);
    const again = await stage.orchestrator.decide({ inputs: asked(action, 'q-2') }, `${action}-2-a`);
    expect([again.status, again.text]).toEqual([201, first.text]);
    for (let n = 0; n < 2; n += 1) {
      const other = await stage.orchestrator.decide({ inputs: asked(action, 'q-2') }, `${action}-2-b`);
      expect([other.status, other.body.code]).toEqual([409, 'same-content']);
    }
  });
});

describe('sameContent: allow', () => {
  test('another key makes an ordinary new decision, and each key replays its own', async () => {
    const bodies = [];
    for (const key of ['r-1-a', 'r-1-b', undefined]) {
      const first = await stage.orchestrator.decide({ inputs: asked('note.often', 'r-1') }, key);
      const again = await stage.orchestrator.decide({ inputs: asked('note.often', 'r-1') }, key);
      expect([first.status, isReplay(first), again.text, isReplay(again)]).toEqual([201, false, first.text, true]);
      bodies.push(first.body);
    }
    expect(new Set(bodies.map(({ decisionId }) => decisionId)).size).toBe(3);
    expect(new Set(bodies.map(({ contentKey }) => contentKey)).size).toBe(1);
  });

  test('when the action stops to allow it, a further key replays the first of them', async () => {
    await stage.admin.put('/v1/actions/note.fickle', { ...TRANSACTIONAL, sameContent: 'allow' });
    const first = await stage.orchestrator.decide({ inputs: asked('note.fickle', 'r-2') }, 'r-2-a');
    const second = await stage.orchestrator.decide({ inputs: asked('note.fickle', 'r-2') }, 'r-2-b');
    await stage.admin.put('/v1/actions/note.fickle', { ...TRANSACTIONAL, sameContent: 'replay' });
    const third = await stage.orchestrator.decide({ inputs: asked('note.fickle', 'r-2') }, 'r-2-c');
    expect([third.status, third.text, isReplay(third)]).toEqual([201, first.text, true]);
    const own = await stage.orchestrator.decide({ inputs: asked('note.fickle', 'r-2') }, 'r-2-b');
    expect(own.text).toBe(second.text);
  });
});
