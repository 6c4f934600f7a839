import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { inputs, type Reply } from '../support/index.js';
import { setStage, type Stage } from '../support/stage.js';

const PATIENCE_MS = 5_000;
const MEMORY_MOST_BYTES = 700 * 1024 * 1024;

let stage: Stage;
let serial = 0;

async function begin(): Promise<void> {
  stage = await setStage();
}

async function end(): Promise<void> {
  await stage?.clear();
}

/** Puts rules and then decides by them; an answer that does not come in time is null. */
async function putThenDecide(
  paramsSchema: unknown,
  params: unknown,
): Promise<{ action: string; put: Reply | null; decided: Reply | null }> {
  const action = `hostile.n${(serial += 1)}`;
  const put = await inTime((signal) =>
    stage.admin.send('PUT', `/v1/actions/${action}`, { body: { execution: 'transactional', paramsSchema }, signal }),
  );
  if (put === null || put.status >= 300) return { action, put, decided: null };
  const body = { inputs: inputs({ action, params }) };
  return {
    action,
    put,
    decided: await inTime((signal) => stage.orchestrator.send('POST', '/v1/decisions', { body, signal })),
  };
}

async function inTime(send: (signal: AbortSignal) => Promise<Reply>): Promise<Reply | null> {
  try {
    return await send(AbortSignal.timeout(PATIENCE_MS));
  } catch {
    return null;
  }
}

/** The process answers everybody else, and has not eaten the machine. */
async function expectAlive(): Promise<void> {
  const health = await inTime((signal) => stage.orchestrator.send('GET', '/healthz', { signal }));
  const other = await inTime((signal) =>
    stage.orchestrator.send('POST', '/v1/decisions', { body: { inputs: inputs() }, signal }),
  );
  const metrics = await inTime((signal) => stage.orchestrator.send('GET', '/metrics', { signal }));
  const [, resident] = /^process_resident_memory_bytes (\S+)$/m.exec(metrics?.text ?? '') ?? [];

  expect([health?.status, other?.status]).toEqual([200, 201]);
  expect(Number(resident)).toBeLessThan(MEMORY_MOST_BYTES);
}

/** A schema of a few kilobytes that names one part of itself many times. */
function repeated(parts: number, times: number): unknown {
  const big = { anyOf: Array.from({ length: parts }, (_, index) => ({ const: `v${index}` })) };
  return { $defs: { big }, allOf: Array.from({ length: times }, () => ({ $ref: '#/$defs/big' })) };
}

/** A schema in which each part asks for the next one twice. */
function doubling(levels: number): unknown {
  const $defs: Record<string, unknown> = { [`a${levels}`]: { type: 'object' } };
  for (let level = 0; level < levels; level += 1) {
    const next = { $ref: `#/$defs/a${level + 1}` };
    $defs[`a${level}`] = { allOf: [next, next] };
  }
  return { $defs, $ref: '#/$defs/a0' };
}

describe('no schema of a tenant stops the service for another', () => {
  // One process for all: what one schema does to it shows at once, and the first that fails is the one to look at.
  beforeAll(begin);
  afterAll(end);

  test.each([
    [
      'a pattern that backtracks without end',
      { properties: { a: { pattern: '^(a+)+$' } } },
      { a: `${'a'.repeat(40)}!` },
    ],
    [
      'a name pattern that backtracks without end',
      { patternProperties: { '^(a|a)*$': {} } },
      { [`${'a'.repeat(40)}!`]: 1 },
    ],
    [
      'a list of unique items that is long',
      { properties: { a: { uniqueItems: true } } },
      { a: Array.from({ length: 30_000 }, (_, i) => [i]) },
    ],
    ['parts that double 40 times', doubling(40), {}],
    ['a part that is named 300 times', repeated(1_000, 300), {}],
    [
      '5,000 properties',
      { properties: Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`p${i}`, { type: 'string' }])) },
      {},
    ],
    ['a reference to itself and nothing else', { $ref: '#' }, {}],
    [
      'two parts that are each other',
      { $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } }, $ref: '#/$defs/a' },
      {},
    ],
    ['a dynamic reference to nothing', { $dynamicRef: '#nowhere' }, {}],
    ['the id of the schema of schemas', { $id: 'https://json-schema.org/draft/2020-12/schema', type: 'object' }, {}],
    ['one id twice', { $id: 'urn:x:y', $defs: { a: { $id: 'urn:x:y' } } }, {}],
    ['an id that is no URI', { $id: '::::' }, {}],
    ['a format that every object inherits', { properties: { a: { format: '__proto__' } } }, { a: 'x' }],
    ['an asynchronous part that nobody waits for', { $defs: { a: { $async: true } }, $ref: '#/$defs/a' }, {}],
    ['60 levels of not', Array.from({ length: 57 }).reduce((schema) => ({ not: schema }), {}), {}],
  ])(
    '%s',
    async (_name, schema, params) => {
      const { put, decided } = await putThenDecide(schema, params);

      expect(put?.status).toBeLessThan(500);
      if (put !== null && put.status < 300) expect(decided?.status).toBeLessThan(500);
      await expectAlive();
    },
    60_000,
  );
});

describe('a sound schema is taken', () => {
  beforeAll(begin);
  afterAll(end);

  test.each([
    [
      'that refers to itself as a whole',
      { type: 'object', properties: { child: { $ref: '#' } }, additionalProperties: false },
      { child: { child: {} } },
      { child: { other: 1 } },
    ],
    [
      'that refers to a part of itself',
      { $defs: { n: { type: 'object', properties: { c: { $ref: '#/$defs/n' } } } }, $ref: '#/$defs/n' },
      { c: { c: {} } },
      { c: { c: 1 } },
    ],
    [
      'that refers to its own id',
      { $id: 'urn:example:tree', type: 'object', properties: { c: { $ref: 'urn:example:tree' } } },
      { c: { c: {} } },
      { c: 1 },
    ],
    [
      'that refers by an anchor',
      { $defs: { n: { $anchor: 'n', type: 'string' } }, properties: { a: { $ref: '#n' } } },
      { a: 'x' },
      { a: 1 },
    ],
    [
      'with words of other vocabularies',
      { 'x-owner': 'risk', properties: { a: { type: 'string', 'x-hint': 1 } } },
      { a: 'x' },
      { a: 1 },
    ],
  ])('%s', async (_name, schema, right, wrong) => {
    const { action, put, decided } = await putThenDecide(schema, right);
    const refused = await stage.orchestrator.decide({ inputs: inputs({ action, params: wrong }) });

    expect([put?.status, decided?.status]).toEqual([201, 201]);
    expect([refused.status, refused.body.code]).toEqual([400, 'validation-failed']);
  });
});

describe('an answer is not much larger than what was asked', () => {
  beforeAll(begin);
  afterAll(end);

  const members = (count: number): string =>
    Array.from({ length: count }, (_, index) => `"${index.toString(36)}":1`).join(',');

  test.each([
    ['of a body with 20,000 unknown members', '/v1/decisions', `{${members(20_000)}}`],
    [
      'of a batch with 400,000 unknown members in one item',
      '/v1/decisions/batch',
      `{"decisions":[{${members(400_000)}}]}`,
    ],
    [
      'of a batch with 500 items of 900 unknown members',
      '/v1/decisions/batch',
      `{"decisions":[${Array.from({ length: 500 }, () => `{${members(900)}}`).join(',')}]}`,
    ],
  ])('that %s', async (_name, path, body) => {
    const reply = await stage.orchestrator.send('POST', path, {
      body,
      headers: { 'content-type': 'application/json' },
    });

    expect([200, 400]).toContain(reply.status);
    expect(reply.text.length).toBeLessThan(2 * body.length);
  });
});
