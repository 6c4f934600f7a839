import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOT } from '#database';
import { LIST_PARAMETERS } from '../support/bad-targets.js';
import { inputs, type Reply } from '../support/index.js';
import { claim } from '../support/leases.js';
import { setStage, TRANSACTIONAL, type Stage } from '../support/stage.js';

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly schema: {
    readonly type?: string;
    readonly format?: string;
    readonly enum?: readonly string[];
    readonly pattern?: string;
    readonly minimum?: number;
    readonly maximum?: number;
    readonly maxLength?: number;
  };
}

const openapi: { paths: Record<string, { get?: { parameters?: readonly Parameter[] } }> } = JSON.parse(
  readFileSync(join(PROJECT_ROOT, 'openapi/openapi.json'), 'utf8'),
);
/** Every query parameter that the description shows, whatever its route; those of the log are asked for and no filters. */
const routes = Object.entries(openapi.paths).filter(([path]) => !path.startsWith('/v1/log/'));
const documented = routes.flatMap(([path, { get }]) =>
  (get?.parameters ?? []).filter((one) => one.in === 'query').map((parameter) => ({ path, ...parameter })),
);
const cases = documented.map((one) => [`${one.path} ${one.name}`, one] as const);
const ROUTES = [
  '/v1/decisions',
  '/v1/decisions/count',
  '/v1/attempts',
  '/v1/attempts/count',
  '/v1/ledger/entries',
].concat(['/v1/exports/decisions', '/v1/access-log']);

let stage: Stage;
/** For each parameter a value that some rows have and others have not. */
let values: Readonly<Record<string, string>>;
beforeAll(async () => {
  stage = await setStage({
    actions: { 'note.add': TRANSACTIONAL, 'odd.act': { execution: 'caller', leaseSeconds: 3600 } },
  });
  for (const id of ['a', 'b', 'c'])
    await stage.orchestrator.decide({ inputs: inputs({ subject: { type: 'case', id } }) });
  await stage.admin.put('/v1/actions/odd.act', { execution: 'caller', leaseSeconds: 60 });
  const odd = {
    inputs: {
      subject: { type: 'order', id: 'odd' },
      action: 'odd.act',
      params: { reportingPeriod: '2026-H2' },
      model: { id: 'm-odd', version: 'v-odd' },
      promptTemplateSha256: 'c'.repeat(64),
      retrievalSnapshotId: 'rs-odd',
      policyVersion: 'pol-odd',
    },
    evidence: { stepId: 'step-odd', runId: 'run-odd' },
  };
  const held = await claim(stage.orchestrator, odd, 'key-odd');
  const done = await held.complete({ status: 'applied', result: {}, externalRef: 'ref-odd' });
  const refused = await claim(stage.orchestrator, { inputs: { ...odd.inputs, params: {} } }, 'key-refused');
  await refused.complete({ status: 'refused', reason: 'limit' });
  await claim(stage.orchestrator, { inputs: { ...odd.inputs, params: { n: 1 } } }, 'key-in-flight');
  await stage.admin.get('/v1/decisions/count');
  await stage.auditor.get('/v1/decisions');
  const [, credentialId = ''] = stage.tokens.admin.split('_');
  const resolver = await stage.orchestrator.decide(odd, 'key-odd');
  expect(resolver.status).toBe(201);
  const between = done.body.recordedAt;
  values = {
    action: 'odd.act',
    actionVersion: '2',
    subjectType: 'order',
    subjectId: 'odd',
    modelId: 'm-odd',
    modelVersion: 'v-odd',
    promptTemplateSha256: 'c'.repeat(64),
    retrievalSnapshotId: 'rs-odd',
    policyVersion: 'pol-odd',
    reportingPeriod: '2026-H2',
    outcome: 'refused',
    reason: 'limit',
    state: 'in_flight',
    key: 'key-odd',
    contentKey: done.body.contentKey,
    downstreamKey: held.reply.body.downstreamKeys.uuid4,
    externalRef: 'ref-odd',
    stepId: 'step-odd',
    runId: 'run-odd',
    credentialId,
    decisionId: held.decisionId,
    recordedFrom: between,
    recordedTo: between,
    disposition: 'completed',
    limit: '1',
    order: 'desc',
    groupBy: 'action',
    format: 'csv',
    route: '/v1/decisions/count',
    from: new Date(Date.parse(between) + 3_600_000).toISOString(),
    to: '2020-01-01T00:00:00Z',
  };
});
afterAll(() => stage?.clear());

/** What a filter that nothing was decided by finds; the rest has rows on both sides. */
const FINDS_NOTHING = ['credentialId', 'from', 'to'];

const ask = (path: string, query: Readonly<Record<string, string>> | string): Promise<Reply> =>
  stage.auditor.get(`${path}?${typeof query === 'string' ? query : new URLSearchParams(query)}`);

/** An answer without what differs between two of the same, each of which is an access as well. */
function substance(path: string, { text, body }: Reply): string {
  if (path === '/v1/access-log')
    return JSON.stringify(body.items.filter(({ route }: { route: string }) => route !== path));
  return text.replaceAll(/"(nextCursor|cursor|sha256)":"[^"]*"/g, '');
}

test('the routes with parameters are those of the contract', () => {
  expect([...new Set(documented.map(({ path }) => path))].toSorted()).toEqual(ROUTES.toSorted());
});

test.each(cases)('%s changes the answer', async (_title, { path, name }) => {
  const whole = await ask(path, '');
  const first = await ask(path, path.startsWith('/v1/exports') ? '' : { limit: '1' });
  const cursor = path.startsWith('/v1/exports')
    ? JSON.parse(first.text.split('\n')[0] ?? '').cursor
    : first.body?.nextCursor;
  const value = name === 'cursor' ? cursor : values[name];
  const changed = await ask(path, {
    [name]: value,
    ...(name === 'cursor' && !path.startsWith('/v1/exports') ? { limit: '50' } : {}),
  });
  expect([changed.status, value]).toEqual([200, expect.any(String)]);
  expect(substance(path, changed)).not.toBe(substance(path, whole));
  if (path.endsWith('/count') && name !== 'groupBy') {
    expect(changed.body.total).toBeLessThan(whole.body.total);
    if (!FINDS_NOTHING.includes(name)) expect(changed.body.total).toBeGreaterThan(0);
  }
});

const expectRefused = (reply: Reply, name: string): void => {
  expect([reply.status, reply.body?.code]).toEqual([400, 'validation-failed']);
  expect(reply.body.errors.map((one: { pointer: string }) => one.pointer)).toContain(name);
};

test.each(cases)('%s is refused when it is empty, or given twice', async (_title, { path, name }) => {
  const value = encodeURIComponent(values[name] ?? 'x');
  for (const query of [name, `${name}=`, `${name}=${value}&${name}=${value}`, `${name}=${value}&${name}=`])
    expectRefused(await ask(path, query), name);
});

/** What the schema of a parameter says that it must not be. */
function illFormed({ schema, name }: Parameter): string[] {
  const wrong = ['a\u0000b', 'x'.repeat(10_000), '\u0000'];
  if (schema.enum !== undefined) wrong.push('nonsense', `${schema.enum[0]} `, `${schema.enum[0]},${schema.enum[1]}`);
  if (schema.pattern !== undefined) wrong.push('a..b', ' ', 'Ä');
  // A cursor of as many others would be more than a request line holds.
  if (schema.maxLength !== undefined) wrong.push('x'.repeat(schema.maxLength + 1));
  if (schema.maxLength === 255) wrong.push('é'.repeat(256), '🦊'.repeat(256));
  if (schema.type === 'integer')
    wrong.push('x', '1.5', '+1', '01', '1e1', String((schema.minimum ?? 0) - 1), String((schema.maximum ?? 0) + 1));
  if (schema.format === 'date-time')
    wrong.push(
      'now',
      '2026-01-01',
      '2026-01-01T00:00:00',
      '2026-02-30T00:00:00Z',
      '1767225600',
      '2026-01-01T00:00:00 04:00',
    );
  if (schema.format === 'uuid')
    wrong.push('x', '{0199c1f0-6b3a-7c52-a1de-5b8c1f0e2d41}', '0199C1F0-6B3A-7C52-A1DE-5B8C1F0E2D41');
  if (name === 'cursor') wrong.push('x', 'AAAA');
  if (name === 'groupBy') wrong.push('action,action', 'action,', ',', 'subjectId', 'action outcome');
  return wrong;
}

test.each(cases)('%s is refused when it is ill-formed', async (_title, parameter) => {
  for (const value of illFormed(parameter))
    expectRefused(await ask(parameter.path, { [parameter.name]: value }), parameter.name);
});

test.each(cases)(
  '%s is taken with odd characters, or refused, and is never read as something else',
  async (_title, { path, name, schema }) => {
    if (
      schema.type !== 'string' ||
      schema.enum !== undefined ||
      schema.pattern !== undefined ||
      schema.format !== undefined ||
      name === 'cursor'
    )
      return;
    for (const value of [
      `'`,
      `"`,
      '%',
      '_',
      '\\',
      `' OR '1'='1`,
      '50%_\\',
      `${values[name]} `,
      '🦊',
      '\u0001',
      '*',
      'null',
    ]) {
      const reply = await ask(path, { [name]: value });
      expect([value, reply.status]).toEqual([value, 200]);
      if (path === '/v1/exports/decisions') expect(reply.text.split('\n')).toHaveLength(2);
      else expect([value, reply.body.total ?? reply.body.items]).toEqual([value, path.endsWith('/count') ? 0 : []]);
    }
  },
);

describe('an unknown parameter is refused', () => {
  const every = Object.keys(openapi.paths).filter(
    (path) => path.startsWith('/v1/') && openapi.paths[path]?.get !== undefined,
  );
  test.each(every)('%s', async (path) => {
    const known = documented.filter((one) => one.path === path).map(({ name }) => name);
    const asked = path.replaceAll(/\{\w+\}/g, 'x');
    const names = [
      'foo',
      'tenant',
      'tenantId',
      'filter',
      'Action',
      'action[]',
      'offset',
      '__proto__',
      'constructor',
      ...Object.keys(LIST_PARAMETERS),
      'groupBy',
      'format',
      'disposition',
      'route',
      'from',
      'to',
    ];
    for (const name of names.filter((one) => !known.includes(one))) {
      const reply = await stage.admin.get(`${asked}?${encodeURIComponent(name)}=1`);
      const pointers: string[] = reply.body?.errors?.map((one: { pointer: string }) => one.pointer) ?? [];
      // What must be there and is not is told as well.
      expect([name, reply.status, pointers.includes(name)]).toEqual([name, 400, true]);
    }
  });
});
