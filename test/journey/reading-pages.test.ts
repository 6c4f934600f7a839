import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { inputs, type Reply } from '../support/index.js';
import { setStage, type Stage } from '../support/stage.js';

let stage: Stage;
beforeAll(async () => {
  stage = await setStage();
  // One statement records a batch, so all of these carry one time.
  const decisions = Array.from({ length: 23 }, (_, n) => ({
    idempotencyKey: `equal-${n}`,
    inputs: inputs({ subject: { type: 'case', id: `equal-${n}` } }),
  }));
  await stage.orchestrator.post('/v1/decisions/batch', { decisions });
  for (const id of ['a', 'b', 'c'])
    await stage.orchestrator.decide({ inputs: inputs({ subject: { type: 'case', id } }) });
});
afterAll(() => stage?.clear());

const list = (query: Record<string, string>): Promise<Reply> =>
  stage.auditor.get(`/v1/decisions?${new URLSearchParams(query)}`);
const idsOf = ({ body }: Reply): string[] => body.items.map((row: { decisionId: string }) => row.decisionId);

/** Every page from the first on, each asked with what `query` says for its number. */
async function walk(query: (page: number) => Record<string, string>): Promise<string[][]> {
  const pages: string[][] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const reply: Reply = await list({ ...query(pages.length), ...(cursor === '' ? {} : { cursor }) });
    expect(reply.status).toBe(200);
    pages.push(idsOf(reply));
    cursor = reply.body.nextCursor;
  }
  return pages;
}

test.each(['asc', 'desc'])(
  'a walk %s through equal timestamps meets each row once, in the order of recording',
  async (order) => {
    const whole = await list({ order, limit: '500', subjectType: 'case', action: 'note.add' });
    expect(
      new Set(whole.body.items.slice(0, 5).map((row: { recordedAt: string }) => row.recordedAt)).size,
    ).toBeLessThan(5);
    for (const limit of ['1', '7', '23']) {
      const pages = await walk(() => ({ order, limit, subjectType: 'case', action: 'note.add' }));
      expect(pages.flat()).toEqual(idsOf(whole));
    }
    const keys = whole.body.items.map(
      (row: { recordedAt: string; decisionId: string }) => row.recordedAt + row.decisionId,
    );
    expect(order === 'asc' ? keys : keys.toReversed()).toEqual(keys.toSorted());
  },
);

test('the limit holds on every page and may change between pages; 50 unless told', async () => {
  const pages = await walk((page) => ({ order: 'asc', limit: String(page + 1) }));
  expect(pages.slice(0, -1).map(({ length }) => length)).toEqual(pages.slice(0, -1).map((_, page) => page + 1));
  expect(new Set(pages.flat()).size).toBe(pages.flat().length);
  const decisions = Array.from({ length: 60 }, (_, n) => ({
    inputs: inputs({ subject: { type: 'bulk', id: `${n}` } }),
  }));
  await stage.orchestrator.post('/v1/decisions/batch', { decisions });
  const byDefault = await list({ subjectType: 'bulk' });
  expect([byDefault.body.items.length, byDefault.body.nextCursor]).toEqual([50, expect.any(String)]);
  expect((await list({ subjectType: 'bulk', limit: '60' })).body.nextCursor).toBeNull();
});

test('a walk returns each row that existed when it began once, whatever is written meanwhile', async () => {
  const existing = idsOf(await list({ order: 'desc', limit: '500' }));
  for (const order of ['asc', 'desc']) {
    const met: string[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const reply: Reply = await list({ order, limit: '9', ...(cursor === '' ? {} : { cursor }) });
      met.push(...idsOf(reply));
      cursor = reply.body.nextCursor;
      if (met.length < 30)
        await stage.orchestrator.decide({
          inputs: inputs({ subject: { type: 'late', id: `${order}-${met.length}` } }),
        });
    }
    expect(new Set(met).size).toBe(met.length);
    expect(met).toEqual(expect.arrayContaining(existing));
  }
});

test('a cursor goes with its filters and its order; anything else is 400', async () => {
  const query = { order: 'asc', limit: '2', subjectType: 'case' };
  const { nextCursor } = (await list(query)).body;
  const other: Record<string, string>[] = [
    { ...query, order: 'desc' },
    { ...query, subjectType: 'order' },
    { ...query, action: 'note.add' },
    { order: 'asc', limit: '2' },
  ];
  for (const changed of other) {
    const reply = await list({ ...changed, cursor: nextCursor });
    expect([reply.status, reply.body.errors?.[0].pointer]).toEqual([400, 'cursor']);
  }
  expect((await list({ ...query, limit: '3', cursor: nextCursor })).status).toBe(200);
  for (const cursor of [
    'x',
    'null',
    '0',
    `${nextCursor}x`,
    nextCursor.slice(1),
    nextCursor.toLowerCase(),
    'a'.repeat(600),
  ]) {
    const reply = await list({ ...query, cursor });
    expect([cursor, reply.status, reply.body.errors?.[0].pointer]).toEqual([cursor, 400, 'cursor']);
  }
});
