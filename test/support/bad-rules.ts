import { jsonRequest, PROTOTYPE_NAMES, type Random, type Variant } from './bad-case.js';

type Json = Record<string, unknown>;

function invalid(
  name: string,
  method: string,
  path: string,
  role: 'admin' | 'operator',
  make: (random: Random) => readonly [body: unknown, pointer: string],
): Variant {
  return {
    name,
    status: 400,
    code: 'validation-failed',
    make(random, scene) {
      const [body, pointer] = make(random);
      return {
        ...jsonRequest(scene, { method, path, role }, typeof body === 'string' ? body : JSON.stringify(body)),
        pointer,
      };
    },
  };
}

const action = (name: string, make: (random: Random) => readonly [body: unknown, pointer: string]): Variant =>
  invalid(name, 'PUT', '/v1/actions/bad.rules', 'admin', make);

const rules = (changes: Json): Json => ({ execution: 'transactional', ...changes });

function nested(levels: number): Json {
  let schema: Json = { type: 'object' };
  for (let level = 0; level < levels; level += 1) schema = { not: schema };
  return schema;
}

/** What no reader of JSON Schema 2020-12 can use, or what reaches outside the schema. */
const UNUSABLE_SCHEMAS: readonly unknown[] = [
  { $ref: 'http://127.0.0.1:1/schema' },
  { $ref: 'https://json-schema.example/x#/y' },
  { $ref: 'file:///etc/passwd' },
  { $ref: '#/$defs/nowhere' },
  { $ref: 1 },
  { $async: true, type: 'object' },
  { properties: { a: { $ref: '#/$defs/a' } }, $defs: { a: { $async: true, type: 'string' } } },
  { $id: 1 },
  { $schema: 'http://json-schema.org/draft-07/schema#' },
  { $schema: 'urn:nobody' },
  { type: 'nothing' },
  { type: ['object', 'object'] },
  { type: null },
  { properties: [] },
  { properties: { a: 1 } },
  { required: 'a' },
  { required: ['a', 'a'] },
  { required: [1] },
  { pattern: 1 },
  { properties: { a: { pattern: '(' } } },
  { properties: { a: { pattern: '[' } } },
  { properties: { a: { pattern: '\\' } } },
  { patternProperties: { '(': {} } },
  { minLength: -1 },
  { maxItems: 1.5 },
  { multipleOf: 0 },
  { enum: 1 },
  { allOf: [] },
  { anyOf: {} },
  { not: 1 },
  { additionalProperties: 1 },
  { $defs: [] },
];

export const BAD_RULES: readonly Variant[] = [
  action('an action with an unknown value', (random) => {
    const [name, value] = random.pick<readonly [string, unknown]>(
      ['execution', random.pick<unknown>('Transactional', '', 'none', null, 1, ['transactional'], {}, '__proto__')],
      ['uniqueness', random.pick<unknown>('once', '', null, 1, 'constructor', ['none'])],
      ['sameContent', random.pick<unknown>('keep', '', null, true, 'toString')],
      ['responseRetentionDays', random.pick<unknown>(0, -1, 3651, 1.5, '90', null, true, [90], 1e15)],
      ['leaseSeconds', random.pick<unknown>(0, 3601, -5, 0.5, '30', null, {})],
    );
    return [rules({ [name]: value }), `/${name}`];
  }),
  action('an action without its execution', (random) => [
    random.pick<Json>({}, { uniqueness: 'none' }, { leaseSeconds: 5 }),
    '/execution',
  ]),
  action('an action with a member that nobody asked for', (random) => {
    const name = random.pick(
      random.word(),
      ...PROTOTYPE_NAMES,
      'version',
      'action',
      'updatedAt',
      'Execution',
      'tenantId',
    );
    return [`{"execution":"transactional",${JSON.stringify(name)}:1}`, `/${name}`];
  }),
  action('a paramsSchema that is no object', (random) => [
    rules({ paramsSchema: random.pick<unknown>(null, true, false, 1, 'x', [], [{}]) }),
    '/paramsSchema',
  ]),
  action('a paramsSchema that nobody can use', (random) => [
    rules({ paramsSchema: random.pick(...UNUSABLE_SCHEMAS) }),
    '/paramsSchema',
  ]),
  {
    name: 'a paramsSchema of too many levels',
    status: 400,
    code: 'malformed-request',
    make: (random, scene) =>
      jsonRequest(
        scene,
        { method: 'PUT', path: '/v1/actions/bad.deep', role: 'admin' },
        JSON.stringify(rules({ paramsSchema: nested(random.whole(64, 500)) })),
      ),
  },
  {
    name: 'a paramsSchema over the limit of a body',
    status: 413,
    code: 'too-large',
    make: (_random, scene) =>
      jsonRequest(
        scene,
        { method: 'PUT', path: '/v1/actions/bad.huge', role: 'admin' },
        JSON.stringify(rules({ paramsSchema: { enum: Array.from({ length: 40_000 }, (_, i) => `v${i}`) } })),
      ),
  },
  {
    name: 'an action by a name that is none',
    status: 400,
    code: 'validation-failed',
    make: (random, scene) =>
      jsonRequest(
        scene,
        {
          method: 'PUT',
          path: `/v1/actions/${random.pick('Note', 'a..b', '.a', 'a.', '1a', 'a%20b', 'a%00', '%00', 'a'.repeat(65), '__proto__', 'a%2Fb', '%C3%A9', 'a%0A', 'a%27')}`,
          role: 'admin',
        },
        JSON.stringify(rules({})),
      ),
  },
  invalid('a credential that cannot be issued', 'POST', '/v1/credentials', 'admin', (random) => {
    const [body, pointer] = random.pick<readonly [Json, string]>(
      [{ role: 'operator', name: 'x' }, '/role'],
      [{ role: random.pick<unknown>('Admin', '', null, 1, ['admin'], 'root', '__proto__'), name: 'x' }, '/role'],
      [{ name: 'x' }, '/role'],
      [{ role: 'auditor' }, '/name'],
      [
        { role: 'auditor', name: random.pick<unknown>('', null, 1, 'a'.repeat(256), '\u{1F600}'.repeat(256), ['x']) },
        '/name',
      ],
      [
        {
          role: 'auditor',
          name: 'x',
          expiresAt: random.pick<unknown>(
            null,
            '',
            1,
            'tomorrow',
            '2030-01-01',
            '2030-01-01T00:00:00',
            '2030-02-30T00:00:00Z',
            '2030-01-01T00:00:60Z',
            '2030-01-01T00:00:00.1234567Z',
            'infinity',
            'now',
            true,
            '10000-01-01T00:00:00Z',
          ),
        },
        '/expiresAt',
      ],
      [
        {
          role: 'auditor',
          name: 'x',
          expiresAt: random.pick('2020-01-01T00:00:00Z', '0001-01-01T00:00:00+15:00', '1969-12-31T23:59:59-05:00'),
        },
        '/expiresAt',
      ],
      [{ role: 'auditor', name: 'x', tenant: 'other' }, '/tenant'],
      [{ role: 'auditor', name: 'x', credentialId: 'mine' }, '/credentialId'],
      [{ role: 'auditor', name: 'x', constructor: 1 }, '/constructor'],
    );
    return [body, pointer];
  }),
  invalid('a tenant that cannot be made', 'POST', '/v1/tenants', 'operator', (random) =>
    random.pick<readonly [unknown, string]>(
      [
        {
          tenant: random.pick<unknown>(
            '',
            '*',
            'Acme',
            '-a',
            'a-',
            'a_b',
            'a'.repeat(21),
            'ac me',
            'acme\n',
            'é',
            null,
            1,
            ['acme'],
            { a: 1 },
            '__proto__',
            '..',
            '\uff41',
          ),
        },
        '/tenant',
      ],
      [{}, '/tenant'],
      [{ tenant: 'fine', role: 'admin' }, '/role'],
      ['{"tenant":"fine","__proto__":{"tenant":"other"}}', '/__proto__'],
    ),
  ),
  {
    name: 'a tenant that is there',
    status: 409,
    code: 'tenant-exists',
    make: (_random, scene) => jsonRequest(scene, { path: '/v1/tenants', role: 'operator' }, '{"tenant":"acme"}'),
  },
];
