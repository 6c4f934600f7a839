import {
  decision,
  jsonRequest,
  PROTOTYPE_NAMES,
  type Attempt,
  type Random,
  type Scene,
  type Variant,
} from './bad-case.js';

type Json = Record<string, unknown>;

/** Every text field of a decision: where it stands, its most code points, and whether it must be there. */
const TEXTS: readonly (readonly [pointer: string, most: number, required: boolean])[] = [
  ['/inputs/subject/type', 255, true],
  ['/inputs/subject/id', 255, true],
  ['/inputs/action', 64, true],
  ['/inputs/model/id', 255, true],
  ['/inputs/model/version', 255, true],
  ['/inputs/promptTemplateSha256', 64, true],
  ['/inputs/retrievalSnapshotId', 255, true],
  ['/inputs/policyVersion', 255, true],
  ['/inputs/tenantId', 255, false],
  ['/note', 4000, false],
  ['/evidence/stepId', 255, false],
  ['/evidence/runId', 255, false],
  ['/evidence/toolCallId', 255, false],
  ['/evidence/traceparent', 255, false],
  ['/evidence/rationale', 4000, false],
];

const OBJECTS: readonly (readonly [pointer: string, required: boolean])[] = [
  ['/inputs', true],
  ['/inputs/subject', true],
  ['/inputs/params', true],
  ['/inputs/model', true],
  ['/evidence', false],
];

const LEVELS = ['', '/inputs', '/inputs/subject', '/inputs/model', '/evidence'] as const;

/** Texts that are not in the form of their field. */
const ILL_FORMED: Readonly<Record<string, readonly string[]>> = {
  '/inputs/promptTemplateSha256': [
    'A'.repeat(64),
    'a'.repeat(63),
    'a'.repeat(65),
    `${'a'.repeat(63)}g`,
    `${'a'.repeat(64)}\n`,
    ` ${'a'.repeat(63)}`,
    '\uff41'.repeat(64),
    `0x${'a'.repeat(62)}`,
  ],
  '/inputs/action': [
    'Note.add',
    'note..add',
    '.note',
    'note.',
    'note add',
    'note.add\n',
    '1note',
    '-note',
    'nöte',
    '__proto__',
    'note/add',
    'a'.repeat(65),
  ],
};

const NOT_TEXT: readonly unknown[] = [null, true, 0, 1.5, [], ['x'], {}, { length: 1 }];
const NOT_OBJECT: readonly unknown[] = [null, true, 0, '', 'x', [], [{}], [[]]];

/** A decision with every optional member, so that each place of it is there to be spoilt. */
function whole(random: Random): Json {
  return {
    ...decision(random),
    note: 'a note',
    evidence: { stepId: 's', runId: 'r', attempt: 1, toolCallId: 't', traceparent: 'p', rationale: 'why' },
  };
}

/** Looks up what holds the place of a pointer whose names need no unescaping. */
function holder(body: Json, pointer: string): { object: Json; name: string } {
  const steps = pointer.split('/').slice(1);
  const name = steps.pop() ?? '';
  let object = body;
  for (const step of steps) object = object[step] as Json;
  return { object, name };
}

function invalid(name: string, spoil: (body: Json, random: Random) => string): Variant {
  return {
    name,
    status: 400,
    code: 'validation-failed',
    make(random: Random, scene: Scene): Attempt {
      const body = whole(random);
      const pointer = spoil(body, random);
      return { ...jsonRequest(scene, {}, JSON.stringify(body)), pointer };
    },
  };
}

function set(pointer: string, value: (random: Random) => unknown, random: Random, body: Json): string {
  const { object, name } = holder(body, pointer);
  object[name] = value(random);
  return pointer;
}

/** Adds a member by its name, also one that an assignment would take for the prototype. */
function add(object: Json, name: string): void {
  Object.defineProperty(object, name, { value: 1, enumerable: true, configurable: true, writable: true });
}

export const BAD_SHAPES: readonly Variant[] = [
  invalid('something else where text belongs', (body, random) =>
    set(random.pick(...TEXTS)[0], () => random.pick(...NOT_TEXT), random, body),
  ),
  invalid('something else where an object belongs', (body, random) =>
    set(random.pick(...OBJECTS)[0], () => random.pick(...NOT_OBJECT), random, body),
  ),
  invalid('a required member that is missing', (body, random) => {
    const required = [
      ...TEXTS.filter(([, , isRequired]) => isRequired),
      ...OBJECTS.filter(([, isRequired]) => isRequired),
    ];
    const [pointer] = random.pick(...required);
    const { object, name } = holder(body, pointer);
    delete object[name];
    return pointer;
  }),
  invalid('null for an optional member', (body, random) =>
    set(
      random.pick('/note', '/evidence', '/evidence/attempt', '/evidence/stepId', '/inputs/tenantId'),
      () => null,
      random,
      body,
    ),
  ),
  invalid('a member that nobody asked for', (body, random) => {
    const level = random.pick(...LEVELS);
    const { object, name } = holder(
      body,
      `${level}/${random.pick(random.word(), 'Inputs', 'idempotencyKey', 'leaseNonce ', 'SUBJECT', '')}`,
    );
    add(object, name);
    return `${level}/${name}`;
  }),
  invalid('a member by the name of something that every object has', (body, random) => {
    const level = random.pick(...LEVELS);
    const { object, name } = holder(body, `${level}/${random.pick(...PROTOTYPE_NAMES)}`);
    add(object, name);
    return `${level}/${name}`;
  }),
  invalid('a member whose name a pointer must escape', (body, random) => {
    const level = random.pick(...LEVELS);
    add(level === '' ? body : holder(body, `${level}/x`).object, 'a/b~c');
    return `${level}/a~1b~0c`;
  }),
  invalid('an empty text', (body, random) => set(random.pick(...TEXTS)[0], () => '', random, body)),
  invalid('a text one character too long', (body, random) => {
    const [pointer, most] = random.pick(...TEXTS);
    return set(pointer, () => 'a'.repeat(most + 1), random, body);
  }),
  invalid('a text of one emoji too many', (body, random) => {
    const [pointer, most] = random.pick(...TEXTS.filter(([name]) => !(name in ILL_FORMED)));
    return set(pointer, () => '\u{1F600}'.repeat(most + 1), random, body);
  }),
  invalid('a text far too long', (body, random) => {
    const [pointer, most] = random.pick(...TEXTS);
    return set(pointer, () => random.pick('a', 'é', '\u{1F600}').repeat(most * random.whole(2, 10)), random, body);
  }),
  invalid('a hash or a name that is ill-formed', (body, random) => {
    const pointer = random.pick(...Object.keys(ILL_FORMED));
    return set(pointer, () => random.pick(...(ILL_FORMED[pointer] ?? [])), random, body);
  }),
  invalid('a number of the try that is not one', (body, random) =>
    set('/evidence/attempt', () => random.pick<unknown>(-1, 1.5, '1', true, [1], {}, -0.25), random, body),
  ),
  {
    name: 'a body that is no object',
    status: 400,
    code: 'validation-failed',
    make: (random, scene) => ({
      ...jsonRequest(
        scene,
        { path: random.pick('/v1/decisions', '/v1/decisions/batch') },
        random.pick('null', 'true', '1', '"x"', '[]', '[{"inputs":{}}]'),
      ),
      pointer: '',
    }),
  },
  {
    name: 'a batch that is no list of 1 to 500',
    status: 400,
    code: 'validation-failed',
    make: (random, scene) => ({
      ...jsonRequest(
        scene,
        { path: '/v1/decisions/batch' },
        JSON.stringify({
          decisions: random.pick<unknown>(
            [],
            null,
            {},
            'x',
            5,
            { length: 1, 0: decision(random) },
            Array.from({ length: 501 }, () => ({})),
          ),
        }),
      ),
      pointer: '/decisions',
    }),
  },
  {
    name: 'a tenant in the inputs that is another',
    status: 403,
    code: 'tenant-mismatch',
    make: (random, scene) =>
      jsonRequest(
        scene,
        {},
        JSON.stringify(
          decision(random, { tenantId: random.pick('other', 'Acme', 'acme ', '*', 'acm\u0435', '__proto__') }),
        ),
      ),
  },
  {
    name: 'an action that the inventory does not have',
    status: 422,
    code: 'unknown-action',
    make: (random, scene) =>
      jsonRequest(
        scene,
        {},
        JSON.stringify(
          decision(random, {
            action: random.pick('constructor', 'tostring', 'note', 'note.add.x', 'note_add', `x.a${random.word()}`),
          }),
        ),
      ),
  },
];
