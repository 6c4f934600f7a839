import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { EMPTY_ROOT, parseReceipt, verifyInclusion } from '#log';
import { inputs, type Client } from '../support/index.js';
import { bytesFromHex, holds, inclusion, opened } from '../support/log-client.js';
import { setStage, until, type Cast, type Stage } from '../support/stage.js';

const UNKNOWN_ENTRY = '0199f1f5-0000-7000-8000-000000000000';

let stage: Stage;
let globex: Cast;
beforeAll(async () => {
  stage = await setStage({ env: { LOG_ORIGIN: 'log.example.org/ledger', SEAL_INTERVAL_MS: '50' } });
  globex = await stage.addTenant('globex');
  await globex.admin.put('/v1/actions/note.add', { execution: 'transactional' });
});
afterAll(() => stage?.clear());

let made = 0;
/** Records something new, and gives the id of its entry. */
async function record(caller: Client = stage.orchestrator): Promise<string> {
  made += 1;
  const reply = await caller.decide({ inputs: inputs({ params: { made } }) });
  return reply.body.ledgerEntryId;
}

test('the empty log has a signed checkpoint, and the key that verifies it', async () => {
  const empty = await stage.addTenant('empty');
  const reply = await empty.auditor.get('/v1/log/checkpoint');
  const keys = await empty.auditor.get('/v1/log/key');

  expect([reply.status, keys.status]).toEqual([200, 200]);
  expect([reply, keys].map(({ headers }) => headers.get('content-type'))).toEqual(
    Array(2).fill('text/plain; charset=utf-8'),
  );
  expect(keys.text).toMatch(/^log\.example\.org\/ledger\/empty\+[0-9a-f]{8}\+\S+\n$/);
  expect(await opened(empty.auditor, reply.text)).toEqual({
    origin: 'log.example.org/ledger/empty',
    size: 0,
    root: EMPTY_ROOT,
  });
  expect((await empty.auditor.get('/v1/log/tile/0/000')).status).toBe(404);
});

test('an idle tenant’s checkpoint is not signed again', async () => {
  await inclusion(stage.auditor, await record());
  const before = await stage.auditor.get('/v1/log/checkpoint');
  // Another tenant’s entry is sealed by a later round, which had its look at this tenant too.
  await inclusion(globex.auditor, await record(globex.orchestrator));
  await inclusion(globex.auditor, await record(globex.orchestrator));
  expect((await stage.auditor.get('/v1/log/checkpoint')).text).toBe(before.text);
});

describe('proofs/inclusion', () => {
  test('waits until the entry is sealed, and proves it against the checkpoint in the same answer', async () => {
    const id = await record();
    const { status, body } = await inclusion(stage.auditor, id);

    expect(status).toBe(200);
    expect(Object.keys(body)).toEqual(['leafIndex', 'treeSize', 'leafHash', 'hashes', 'checkpoint']);
    expect(await holds(stage.auditor, body)).toBe(true);
    const { body: entry } = await stage.auditor.get(`/v1/ledger/entries/${id}`);
    expect(entry.leafIndex).toBe(body.leafIndex);
  });

  test('with Accept: text/plain it is a receipt that is complete in itself', async () => {
    const id = await record();
    const { body } = await inclusion(stage.auditor, id);
    const reply = await inclusion(stage.auditor, id, { accept: 'text/plain', prefer: 'wait=30' });
    const receipt = parseReceipt(reply.text);
    const { size, root } = await opened(stage.auditor, receipt.checkpoint);

    expect(reply.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(receipt.index).toBe(body.leafIndex);
    const leaf = bytesFromHex(body.leafHash);
    expect(verifyInclusion({ index: receipt.index, size, leafHash: leaf, hashes: receipt.hashes, root })).toBe(true);
  });

  test.each([
    ['application/json', 'application/json'],
    ['*/*', 'application/json'],
    ['text/plain;q=0.5, application/json', 'application/json'],
    ['text/plain, application/json;q=0.5', 'text/plain'],
    ['text/*', 'text/plain'],
    ['text/plain, */*;q=0.1', 'text/plain'],
  ])('Accept: %s gives %s', async (accept, type) => {
    const id = await record();
    const { headers } = await inclusion(stage.auditor, id, { accept, prefer: 'wait=30' });
    expect(headers.get('content-type')).toBe(`${type}; charset=utf-8`);
  });

  test('an entry that is not there: 404; one of another tenant too', async () => {
    const foreign = await record(globex.orchestrator);
    await inclusion(globex.auditor, foreign);
    for (const id of [UNKNOWN_ENTRY, foreign]) {
      const { status, body } = await inclusion(stage.auditor, id);
      expect([status, body.code, body.detail]).toEqual([404, 'not-found', 'There is no such ledger entry.']);
    }
  });

  test.each(['', '?ledgerEntryId=', '?ledgerEntryId=x', `?ledgerEntryId=${UNKNOWN_ENTRY}&x=1`])(
    'a query that cannot be read (%s): 400',
    async (query) => {
      const { status, body } = await stage.auditor.get(`/v1/log/proofs/inclusion${query}`);
      expect([status, body.code]).toEqual([400, 'validation-failed']);
    },
  );
});

describe('while no worker runs', () => {
  let quiet: Stage;
  beforeAll(async () => {
    quiet = await setStage({ env: { WORKER: 'off' } });
  });
  afterAll(() => quiet?.clear());

  test('an entry is not sealed: 409 with Retry-After, also after waiting, and its place is null', async () => {
    const { body: decision } = await quiet.orchestrator.decide({ inputs: inputs() });
    const patience: readonly Readonly<Record<string, string>>[] = [{}, { prefer: 'wait=1' }];
    for (const headers of patience) {
      const { status, body, headers: given } = await inclusion(quiet.auditor, decision.ledgerEntryId, headers);
      expect([status, body.code, body.retryable]).toEqual([409, 'not-sealed', true]);
      expect(Number(given.get('retry-after'))).toBeGreaterThan(0);
    }
    const { body: entry } = await quiet.auditor.get(`/v1/ledger/entries/${decision.ledgerEntryId}`);
    expect(entry.leafIndex).toBe(null);
  });

  test('a log that was never signed says so', async () => {
    const { status, body } = await quiet.auditor.get('/v1/log/checkpoint');
    expect([status, body.code]).toEqual([503, 'unavailable']);
  });
});

describe('who may ask', () => {
  const ROUTES = ['checkpoint', 'key', 'tile/0/000', 'proofs/inclusion', 'proofs/consistency'];

  test.each(ROUTES)('%s: each role of the tenant, and no stranger; no other method', async (route) => {
    for (const role of ['admin', 'auditor', 'orchestrator'] as const)
      expect([401, 403]).not.toContain((await stage[role].get(`/v1/log/${route}`)).status);
    const stranger = await fetch(`${stage.service.url}/v1/log/${route}`);
    expect(stranger.status).toBe(401);
    const posted = await stage.admin.post(`/v1/log/${route}`, {});
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, expect.stringContaining('GET')]);
  });

  test('two tenants have two logs, under two names, with two keys', async () => {
    const [mine, yours] = [
      await stage.auditor.get('/v1/log/checkpoint'),
      await globex.auditor.get('/v1/log/checkpoint'),
    ];
    expect(mine.text.split('\n')[0]).toBe('log.example.org/ledger/acme');
    expect(yours.text.split('\n')[0]).toBe('log.example.org/ledger/globex');
    await expect(opened(globex.auditor, mine.text)).rejects.toThrow();
  });
});

test('the metrics say how far sealing is behind, and which logs stand still', async () => {
  const text = async (): Promise<string> => (await fetch(`${stage.service.url}/metrics`)).text();
  expect(await until(text, (said) => said.includes('log_unsealed_entries 0'))).toContain('log_trees_stopped 0');
  expect(await text()).toMatch(/^log_sealing_lag_seconds \d/m);
});
