import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { DecisionListRow } from '#ledger';
import { inputs, type Reply } from '../support/index.js';
import { claim } from '../support/leases.js';
import { exported } from '../support/reading.js';
import { putActions, setStage, TRANSACTIONAL, type Stage } from '../support/stage.js';

const CALLER = { execution: 'caller', leaseSeconds: 3600 } as const;

let stage: Stage;
beforeAll(async () => {
  stage = await setStage();
});
afterAll(() => stage?.clear());

/** Every way to ask for a decision finds it, failed; its attempts are found by it. */
async function expectListed(decisionId: string, action: string): Promise<void> {
  const path = `decisionId=${decisionId}`;
  expect((await stage.auditor.get(`/v1/decisions/${decisionId}`)).body.state).toBe('failed');
  for (const query of [path, `${path}&state=failed`, `${path}&action=${action}&runId=run-1`, `${path}&key=${action}`]) {
    const { items } = (await stage.auditor.get(`/v1/decisions?${query}`)).body;
    expect([query, items.map((row: DecisionListRow) => [row.decisionId, row.state, row.outcome])]).toEqual([
      query,
      [[decisionId, 'failed', null]],
    ]);
    expect((await stage.auditor.get(`/v1/decisions/count?groupBy=state&${query}`)).body).toEqual({
      total: 1,
      groups: [{ state: 'failed', count: 1 }],
    });
    expect(await exported(stage.auditor, Object.fromEntries(new URLSearchParams(query)))).toEqual([
      expect.objectContaining({ decisionId, ledgerEntryId: null }),
    ]);
  }
  expect((await stage.auditor.get(`/v1/attempts/count?groupBy=disposition&${path}&state=failed`)).body.groups).toEqual([
    { disposition: 'created', count: 1 },
    { disposition: 'failed', count: 1 },
  ]);
}

async function failed(action: string): Promise<{ decisionId: string; body: Record<string, unknown> }> {
  const body = { inputs: inputs({ action }), evidence: { runId: 'run-1' } };
  const held = await claim(stage.orchestrator, body, action);
  await held.fail('none');
  return { decisionId: held.decisionId, body };
}

test.each(['replay', 'refuse'])(
  'a failed decision stays in every list when another key’s decision has its content by the time it is tried again (%s)',
  async (sameContent) => {
    const action = `overtaken.${sameContent}`;
    await putActions(stage.admin, { [action]: { ...CALLER, sameContent } });
    const { decisionId, body } = await failed(action);
    const other = await claim(stage.orchestrator, body, `${action}.other`);
    const winner = await other.complete({ status: 'applied', result: {} });
    const again = await stage.orchestrator.decide(body, action);
    expect(again.status).toBe(sameContent === 'replay' ? 201 : 409);
    expect(again.body.winner?.decisionId ?? again.body.decisionId).toBe(winner.body.decisionId);
    await expectListed(decisionId, action);
  },
);

test.each(['replay', 'refuse', 'allow'])(
  'a failed decision is free to be made again, once, under an action that has become transactional, and stays in every list (%s)',
  async (sameContent) => {
    const action = `changed.${sameContent}`;
    await putActions(stage.admin, { [action]: { ...CALLER, sameContent } });
    const { decisionId, body } = await failed(action);
    await putActions(stage.admin, { [action]: { ...TRANSACTIONAL, sameContent } });
    const replies: Reply[] = [];
    for (const key of [action, action, `${action}.again`]) replies.push(await stage.orchestrator.decide(body, key));
    const [first, replayed, underAnotherKey] = replies;
    expect([first?.status, first?.headers.get('idempotent-replayed')]).toEqual([201, null]);
    expect(first?.body.decisionId).not.toBe(decisionId);
    expect(replayed?.text).toBe(first?.text);
    expect(underAnotherKey?.status).toBe(sameContent === 'refuse' ? 409 : 201);
    expect(underAnotherKey?.body.decisionId === first?.body.decisionId).toBe(sameContent === 'replay');
    const { items } = (await stage.auditor.get(`/v1/decisions?action=${action}&state=completed`)).body;
    expect(items).toHaveLength(sameContent === 'allow' ? 2 : 1);
    const rest = await stage.auditor.get(`/v1/decisions?decisionId=${decisionId}`);
    expect(rest.body.items).toEqual([expect.objectContaining({ decisionId, state: 'failed', recordedAt: null })]);
  },
);
