import {
  JSON_TYPE,
  jsonRequest,
  plainRequest,
  PROTOTYPE_NAMES,
  type Random,
  type Role,
  type Scene,
  type Variant,
} from './bad-case.js';

/** The parameters of the list, with one value that each would take. */
export const LIST_PARAMETERS: Readonly<Record<string, string>> = {
  action: 'note.add',
  actionVersion: '1',
  subjectType: 'case',
  subjectId: 'C-1',
  modelId: 'm',
  modelVersion: '1',
  promptTemplateSha256: 'a'.repeat(64),
  retrievalSnapshotId: 'r',
  policyVersion: 'p',
  reportingPeriod: '2026',
  outcome: 'applied',
  reason: 'x',
  state: 'completed',
  key: 'k',
  contentKey: 'c',
  downstreamKey: 'a'.repeat(40),
  externalRef: 'e',
  stepId: 's',
  runId: 'r',
  credentialId: 'c',
  decisionId: '0199c1f0-6b3a-7c52-a1de-5b8c1f0e2d41',
  recordedFrom: '2026-01-01T00:00:00Z',
  recordedTo: '2027-01-01T00:00:00Z',
  limit: '5',
  order: 'asc',
  cursor: 'x',
};

const NAMES = Object.keys(LIST_PARAMETERS);

/** Values that a parameter of a fixed form must refuse. */
const ILL_FORMED: Readonly<Record<string, readonly string[]>> = {
  action: ['Note', 'a..b', "a'--", 'a%20b'],
  actionVersion: ['0', '-1', '1.0', '01', '1e0', '%201', '2147483648', '99999999999999999999', 'x', '0x1', '%D9%A1'],
  promptTemplateSha256: ['a'.repeat(63), 'A'.repeat(64), 'x'.repeat(64)],
  outcome: ['Applied', 'applied%20', 'completed', 'null', '__proto__'],
  state: ['expired', 'COMPLETED', 'constructor'],
  downstreamKey: [
    'a'.repeat(39),
    'a'.repeat(41),
    'A'.repeat(40),
    `dk_acme_${'a'.repeat(40)}`,
    'aaaaaaaa-aaaa-7aaa-8aaa-aaaaaaaaaaaa',
    'aaaaaaaa-aaaa-4aaa-caaa-aaaaaaaaaaaa',
  ],
  decisionId: [
    '0199C1F0-6B3A-7C52-A1DE-5B8C1F0E2D41',
    'x',
    '0199c1f06b3a7c52a1de5b8c1f0e2d41',
    '%7B0199c1f0-6b3a-7c52-a1de-5b8c1f0e2d41%7D',
  ],
  recordedFrom: [
    '2026-01-01',
    '2026-01-01T00:00:00',
    '2026-01-01T00:00:00+04:00',
    '2026-02-30T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T00:00:60Z',
    '2026-01-01T00:00:00.1234567Z',
    'now',
    'infinity',
    '20260101T000000Z',
    '0000-01-01T00:00:00Z',
    '1767225600',
  ],
  limit: ['0', '501', '-1', '5.0', '05', '1e1', 'all', '%2B5', '5%20'],
  order: ['ASC', 'up', 'asc,desc', 'asc;drop table x', 'desc--'],
  cursor: ['x', 'AAAA', '%3D', 'MjAyNi0wMS0wMVQwMDowMDowMC4wMDAwMDBafg'],
};

const listOf = (name: string, query: (random: Random) => string): Variant => ({
  name,
  status: 400,
  code: 'validation-failed',
  make: (random, scene) =>
    plainRequest(scene, 'GET', `/v1/decisions?${query(random)}`, random.pick<Role>('orchestrator', 'admin', 'auditor')),
});

/** Every route but the list, with a request that it would answer with success or a 404. */
const ROUTES: readonly (readonly [method: string, path: (scene: Scene) => string, role: Role])[] = [
  ['GET', (scene) => `/v1/decisions/${scene.decisionId}`, 'auditor'],
  ['GET', (scene) => `/v1/idempotency-records/${scene.key}`, 'orchestrator'],
  ['GET', () => '/v1/actions', 'admin'],
  ['GET', () => '/v1/actions/note.add', 'auditor'],
  ['GET', () => '/v1/credentials', 'admin'],
];

const notThere = (name: string, path: (random: Random) => string): Variant => ({
  name,
  status: 404,
  code: 'not-found',
  make: (random, scene) => plainRequest(scene, 'GET', path(random), 'admin'),
});

const BAD_ESCAPES = ['%', '%z', '%zz', '%2', '%ff', '%c3', '%c0%af', '%ed%a0%80', '%e2%82'];

export const BAD_TARGETS: readonly Variant[] = [
  listOf('a parameter of the list given twice', (random) => {
    const name = random.pick(...NAMES);
    const value = LIST_PARAMETERS[name];
    return `${name}=${value}&${random.pick(name, `%${name.charCodeAt(0).toString(16)}${name.slice(1)}`)}=${random.pick(value, 'other', '')}`;
  }),
  listOf(
    'a parameter of the list without a value',
    (random) => `${random.pick(...NAMES)}${random.pick('', '=', '=&limit=5')}`,
  ),
  listOf(
    'a parameter of the list with U+0000',
    (random) => `${random.pick(...NAMES)}=${random.pick('%00', 'a%00', '%00a')}`,
  ),
  listOf(
    'a parameter of the list that cannot be decoded',
    (random) => `${random.pick(...NAMES)}=${random.pick('', 'a')}${random.pick(...BAD_ESCAPES)}`,
  ),
  listOf(
    'a parameter of the list that is too long',
    (random) => `${random.pick(...NAMES)}=${random.pick('a'.repeat(513), '%C3%A9'.repeat(600))}`,
  ),
  listOf('a parameter of the list that is ill-formed', (random) => {
    const name = random.pick(...Object.keys(ILL_FORMED));
    return `${name}=${random.pick(...(ILL_FORMED[name] ?? []))}`;
  }),
  listOf('a parameter of the list as an array or an object', (random) => {
    const name = random.pick(...NAMES);
    return `${name}${random.pick('[]', '[0]', '%5B%5D', '[a]', '[a][b]', '.a', '[__proto__]')}=${LIST_PARAMETERS[name]}`;
  }),
  listOf(
    'a parameter that the list does not know',
    (random) =>
      `${random.pick(random.word(), ...PROTOTYPE_NAMES, 'Action', 'action%20', 'tenant', 'tenantId', 'tenant_id', 'filter', 'page', 'groupBy', '$where', '', '%00', '%ff', '%zz')}=${random.pick('1', 'x')}`,
  ),
  {
    name: 'a query parameter on a route that has none',
    status: 400,
    code: 'validation-failed',
    make: (random, scene) => {
      const [method, path, role] = random.pick(...ROUTES);
      return plainRequest(
        scene,
        method,
        `${path(scene)}?${random.pick(random.word(), 'limit', 'tenant', '__proto__')}=${random.pick('1', '')}`,
        role,
      );
    },
  },
  {
    name: 'a query parameter on a route that writes',
    status: 400,
    code: 'validation-failed',
    make: (random, scene) => {
      const query = `?${random.pick('dryRun', 'tenant', random.word())}=1`;
      return random.pick(
        () =>
          jsonRequest(
            scene,
            { path: `/v1/decisions${query}` },
            '{"inputs":{"subject":{"type":"bad","id":"query"},"action":"note.add","params":{},"model":{"id":"m","version":"1"},"promptTemplateSha256":"' +
              'a'.repeat(64) +
              '","retrievalSnapshotId":"r","policyVersion":"p"}}',
          ),
        () =>
          jsonRequest(
            scene,
            { method: 'PUT', path: `/v1/actions/note.query${query}`, role: 'admin' },
            '{"execution":"transactional"}',
          ),
        () =>
          jsonRequest(scene, { path: `/v1/credentials${query}`, role: 'admin' }, '{"role":"auditor","name":"query"}'),
        () => jsonRequest(scene, { path: `/v1/tenants${query}`, role: 'operator' }, `{"tenant":"q-${random.word(8)}"}`),
      )();
    },
  },
  {
    name: 'a path that cannot be decoded',
    status: 400,
    code: 'malformed-request',
    make: (random, scene) =>
      plainRequest(
        scene,
        'GET',
        `/v1/${random.pick('idempotency-records', 'decisions', 'actions')}/a${random.pick(...BAD_ESCAPES)}`,
        'admin',
      ),
  },
  {
    name: 'a path that is far too long',
    status: '4xx',
    make: (random, scene) =>
      plainRequest(
        scene,
        'GET',
        `/v1/${random.pick('decisions', 'actions', 'idempotency-records', 'x')}/${'a'.repeat(random.whole(800, 30_000))}`,
        'admin',
      ),
  },
  notThere(
    'a decision id that is none, or nobody has',
    (random) =>
      `/v1/decisions/${random.pick('x', '0', '-1', '%00', 'a%00', '%20', "'", '%27%20OR%201=1', '..%2f', '%2e%2e', 'null', '0199C1F0-6B3A-7C52-A1DE-5B8C1F0E2D41', '0199c1f0-6b3a-7c52-a1de-5b8c1f0e2d41', '00000000-0000-0000-0000-000000000000', '{id}', '__proto__', 'constructor', '%F0%9F%98%80', 'a'.repeat(700))}`,
  ),
  notThere(
    'a key that is none, or nobody has',
    (random) =>
      `/v1/idempotency-records/${random.pick('nobody', '%00', 'k%00', '%20', 'a'.repeat(256), 'a'.repeat(700), '%7F', '%C3%A9', '%F0%9F%98%80', '%22k%22', "'", '%25', '%2F', '__proto__', 'constructor', 'dk_acme_', `dk_acme_${'0'.repeat(40)}`)}`,
  ),
  notThere(
    'an action that is not there',
    (random) =>
      `/v1/actions/${random.pick('Note', 'a..b', '%00', 'x%00', '%20', 'a'.repeat(65), '__proto__', 'constructor', 'tostring', "'", '%2e', '%F0%9F%98%80')}`,
  ),
  {
    name: 'a credential to revoke that is not there',
    status: 404,
    code: 'not-found',
    make: (random, scene) =>
      plainRequest(
        scene,
        'DELETE',
        `/v1/credentials/${random.pick('x', '%00', 'abc%00', '%20', '*', "'", '%25', 'a'.repeat(700), '%F0%9F%98%80', '__proto__', scene.tokens.operator.split('_')[1] ?? '', scene.tokens.operator, '..%2f')}`,
        'admin',
      ),
  },
  notThere('a route that is not there', (random) =>
    random.pick(
      '/',
      '/v1',
      '/v1/',
      '/v2/decisions',
      '/V1/decisions',
      '/v1/decision',
      '/v1/decisions/',
      '/v1//decisions',
      '//v1/decisions',
      '/v1/decisions/a/b',
      '/v1/tenants/acme',
      '/v1/actions/note.add/',
      '/.env',
      '/..%2f..%2fetc/passwd',
      '/v1/../healthz',
      '/v1/decisions%2fcount',
      '/healthz/',
      '/%2e%2e',
      '/docs/../../package.json',
      '/__proto__',
      '/v1/decisions;x=1',
    ),
  ),
  {
    name: 'a method that the path does not know',
    status: 405,
    code: 'method-not-allowed',
    make: (random, scene) => {
      const [path, methods] = random.pick(
        [
          '/v1/decisions',
          ['PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND', 'OPTIONS', 'SEARCH', 'LOCK', 'MKCOL', 'PURGE'],
        ] as const,
        ['/v1/decisions/batch', ['PUT', 'DELETE', 'TRACE', 'PATCH']] as const,
        [`/v1/decisions/${scene.decisionId}`, ['POST', 'PUT', 'DELETE', 'PATCH', 'TRACE']] as const,
        ['/v1/actions/note.add', ['POST', 'DELETE', 'PATCH', 'MERGE']] as const,
        ['/v1/actions', ['PUT', 'POST', 'DELETE']] as const,
        ['/v1/credentials', ['PUT', 'DELETE', 'PATCH']] as const,
        ['/v1/tenants', ['GET', 'PUT', 'DELETE']] as const,
        ['/healthz', ['POST', 'PUT', 'DELETE', 'TRACE']] as const,
        ['/v1/idempotency-records/k', ['POST', 'PUT', 'DELETE']] as const,
      );
      return plainRequest(scene, random.pick(...methods), path, random.pick<Role>('admin', 'orchestrator'));
    },
  },
  {
    name: 'a method that is none',
    status: '4xx',
    make: (random, scene) =>
      plainRequest(
        scene,
        random.pick('get', 'post', 'Get', 'GE T', 'G\xe9T', 'FROB', 'G'.repeat(300), '', ' GET', 'GET\t', '{}'),
        '/v1/decisions',
        'admin',
        [JSON_TYPE],
      ),
  },
];
