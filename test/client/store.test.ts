import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { fileStore, memoryStore, type Store } from '../../libs/client/src/index.js';
import { fakeLedger, type Ledger } from './ledgers.js';
import { clientOf, errorOf, freshInputs, pause } from './support.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ledger-store-'));
});
afterEach(() => rm(folder, { recursive: true }));

const stores: [string, () => Store][] = [
  ['in memory', memoryStore],
  ['in files', () => fileStore(join(folder, 'made/by/it'))],
];

describe.each(stores)('a store %s', (_, open) => {
  test('gives back what was put, and null for what was not', async () => {
    const store = open();
    expect(await store.read('ab')).toBeNull();
    await store.create('ab', 'one\u2028 Ünïcode');
    expect(await store.read('ab')).toBe('one\u2028 Ünïcode');
    await store.replace('ab', 'two');
    await store.replace('cd', 'three');
    expect([await store.read('ab'), await store.read('cd')]).toEqual(['two', 'three']);
    await store.remove('ab');
    await store.remove('ab');
    expect(await store.read('ab')).toBeNull();
  });

  test('lists names by how they begin', async () => {
    const store = open();
    for (const name of ['aa', 'aa.01', 'aa.02', 'ab']) await store.create(name, '');
    expect((await store.list('aa.')).sort()).toEqual(['aa.01', 'aa.02']);
    expect((await store.list('')).sort()).toEqual(['aa', 'aa.01', 'aa.02', 'ab']);
  });

  test('of many who create one name at the same instant, one does', async () => {
    const store = open();
    const texts = Array.from({ length: 40 }, (_unused, index) => `text ${index}`);
    const created = await Promise.all(texts.map((text) => store.create('ab', text)));
    expect(created.filter(Boolean)).toHaveLength(1);
    expect(await store.read('ab')).toBe(texts[created.indexOf(true)]);
  });
});

describe('the file store', () => {
  test('is for its owner only, and leaves nothing beside its files', async () => {
    const inside = join(folder, 'store');
    const store = fileStore(inside);
    await Promise.all([store.create('ab', 'x'), store.create('ab', 'y'), store.replace('cd', 'z')]);
    expect((await stat(inside)).mode & 0o777).toBe(0o700);
    expect((await readdir(inside)).sort()).toEqual(['ab.json', 'cd.json']);
    expect((await stat(join(inside, 'ab.json'))).mode & 0o777).toBe(0o600);
    expect((await stat(join(inside, 'cd.json'))).mode & 0o777).toBe(0o600);
  });

  test('gives an error, not an empty answer, if its folder cannot be used', async () => {
    await writeFile(join(folder, 'file'), '');
    const store = fileStore(join(folder, 'file/below'));
    expect(await errorOf(store.create('ab', 'x'))).toMatchObject({ code: 'ENOTDIR' });
    expect(await errorOf(store.read('ab'))).toMatchObject({ code: 'ENOTDIR' });
  });
});

describe('over a file store', () => {
  let ledger: Ledger;
  beforeAll(async () => {
    ledger = await fakeLedger();
  });
  afterAll(() => ledger?.stop());

  test('the bytes are kept before they are sent, the outcome before it is reported, and both are gone at the end', async () => {
    const keptAt: Record<string, string[]> = {};
    ledger.road.onArrival = async ({ route, body }) => {
      const files = await Promise.all((await readdir(folder)).map((file) => readFile(join(folder, file), 'utf8')));
      keptAt[route] = files.filter((text) =>
        JSON.stringify(JSON.parse(text)).includes(JSON.stringify(body).slice(1, -1)),
      );
    };
    const client = clientOf(ledger, { store: fileStore(folder) });
    await client.decide(freshInputs('refund.create'), () => ({ paid: true }));
    ledger.road.onArrival = () => undefined;
    expect([keptAt['register']?.length, keptAt['completion']?.length]).toEqual([1, 1]);
    expect(await readdir(folder)).toEqual([]);
  });

  test('the token is never kept', async () => {
    let texts: string[] = [];
    ledger.road.onArrival = async () => {
      texts = await Promise.all((await readdir(folder)).map((file) => readFile(join(folder, file), 'utf8')));
    };
    await clientOf(ledger, { store: fileStore(folder) }).decide(freshInputs('refund.create'), () => null);
    ledger.road.onArrival = () => undefined;
    expect(texts.length).toBeGreaterThan(0);
    expect(texts.join('')).not.toContain(ledger.token);
  });

  test.each([
    ['applied', 'note.add', undefined],
    ['refused by the service', 'case.close', undefined],
    ['rejected', 'no.such', undefined],
    ['unknown', 'refund.create', () => Promise.reject(new Error('?'))],
  ])('nothing is left after a decision that was %s', async (_name, action, run) => {
    const store = fileStore(folder);
    const inputs = freshInputs(action);
    if (action === 'case.close') await clientOf(ledger).decide({ ...inputs, policyVersion: 'before' });
    await clientOf(ledger, { store })
      .decide(inputs, run)
      .catch(() => undefined);
    expect(await readdir(folder)).toEqual([]);
  });

  test('many clients on one folder run once', async () => {
    const inputs = freshInputs('refund.create');
    let runs = 0;
    const run = async (): Promise<number> => {
      await pause(50);
      return (runs += 1);
    };
    // So that all of them have opened the record, and send its nonce, before the first is given the lease.
    ledger.road.plan('register', ...Array.from({ length: 8 }, () => ({ kind: 'slow', ms: 300 }) as const));
    const clients = Array.from({ length: 8 }, () => clientOf(ledger, { store: fileStore(folder), waitSeconds: 3 }));
    const outcomes = await Promise.all(clients.map((client) => client.decide(inputs, run)));
    expect([runs, new Set(outcomes.map(({ ledgerEntryId }) => ledgerEntryId)).size]).toEqual([1, 1]);
    expect(await readdir(folder)).toEqual([]);
  });

  test('who took a lease by a shared nonce, and slept through its completion by another, does not run', async () => {
    const files = fileStore(folder);
    let wake: () => void = () => undefined;
    let isAsleep = false;
    const asleep = new Promise<void>((resolve) => (wake = resolve));
    // Sleeps between the answer that gives the lease and the taking of the right to run.
    const sleepy: Store = {
      ...files,
      async create(name, text) {
        if (name.includes('.')) {
          isAsleep = true;
          await asleep;
        }
        return files.create(name, text);
      },
    };
    const inputs = freshInputs('refund.create');
    const ran: string[] = [];
    const sleeping = clientOf(ledger, { store: sleepy }).decide(inputs, () => ran.push('sleepy'));
    while (!isAsleep) await pause(5);
    const first = await clientOf(ledger, { store: files }).decide(inputs, () => ran.push('awake'));
    wake();
    expect(await sleeping).toEqual({ ...first, replayed: true });
    expect(ran).toEqual(['awake']);
  });

  test('a record that cannot be read stops the decision', async () => {
    const client = clientOf(ledger, { store: fileStore(folder), retry: { tries: 1 } });
    const inputs = freshInputs('refund.create');
    ledger.road.plan('register', { kind: 'reset-before' });
    await errorOf(client.decide(inputs, () => null));
    const [file = ''] = await readdir(folder);
    await writeFile(join(folder, file), '{"v":1,"key":');
    expect(await errorOf(client.decide(inputs, () => null))).toMatchObject({
      message: expect.stringMatching(/cannot be read/),
    });
  });
});
