import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import {
  canonicalJson,
  deriveContentKey,
  fingerprint,
  parseStrictJson,
  type DecisionInputs,
  type JsonValue,
} from '#key';
import { PROTOTYPE_NAMES } from '../support/bad-case.js';
import { inputs } from '../support/index.js';
import { setStage, TRANSACTIONAL, type Stage } from '../support/stage.js';
import { exchange, requestBytes } from '../support/wire.js';

let stage: Stage;

beforeAll(async () => {
  stage = await setStage({
    actions: {
      'note.add': TRANSACTIONAL,
      'odd.required': { ...TRANSACTIONAL, paramsSchema: { required: ['toString'] } },
      'odd.optional': { ...TRANSACTIONAL, paramsSchema: { properties: { constructor: { type: 'string' } } } },
    },
  });
});

afterAll(async () => {
  await stage?.clear();
});

const EMOJI = '\u{1F600}';

/** Registers a body that is given as text, with header lines of one's own. */
async function register(
  body: string,
  ...lines: readonly string[]
): Promise<{ status: number; body: Record<string, unknown>; headers: Headers }> {
  const head = ['Content-Type: application/json', `Authorization: Bearer ${stage.orchestrator.token}`, ...lines];
  const { replies } = await exchange(stage.service.url, requestBytes('POST', '/v1/decisions', head, body));
  const [reply] = replies;
  return {
    status: reply?.status ?? 0,
    body: JSON.parse(reply?.text ?? '{}'),
    headers: reply?.headers ?? new Headers(),
  };
}

/** The inputs as the law reads them, with the tenant. */
function lawful(body: string): DecisionInputs {
  const { inputs: read } = parseStrictJson(Buffer.from(body)) as unknown as { inputs: DecisionInputs };
  return { ...read, tenantId: stage.tenant };
}

function viewedInputs(text: string): JsonValue {
  return (parseStrictJson(Buffer.from(text)) as unknown as { request: { inputs: JsonValue } }).request.inputs;
}

describe('params are data, whatever their members are called', () => {
  const texts = [
    ...PROTOTYPE_NAMES.map((name) => `{"${name}":1}`),
    ...PROTOTYPE_NAMES.map((name) => `{"a":[{"${name}":{"${name}":"x"}}]}`),
    `{${PROTOTYPE_NAMES.map((name) => `"${name}":{"polluted":true}`).join(',')}}`,
    '{"\\u005f_proto__":{"admin":true},"x":{"__proto__":null}}',
    '{"":1}',
    '{"1":1,"01":2,"-0":3}',
    '{"toJSON":"x","length":-1,"then":{}}',
  ];

  test.each(texts)('%s is recorded, and hashed by the law', async (params) => {
    const id = randomUUID();
    const body = JSON.stringify({ inputs: inputs({ subject: { type: 'odd', id }, params: '?' }) }).replace(
      '"?"',
      params,
    );
    const { canonical, key } = deriveContentKey(lawful(body));
    const first = await register(body);
    const [row] = await stage.database.query<{ inputs: string; fingerprint: string }>(
      `SELECT inputs, encode(fingerprint, 'hex') AS fingerprint FROM decision_record WHERE subject_id = $1`,
      [id],
    );
    const view = await stage.auditor.get(`/v1/decisions/${String(first.body['decisionId'])}`);

    expect(first.status).toBe(201);
    expect(first.body['contentKey']).toBe(key);
    expect(row).toEqual({ inputs: canonical, fingerprint: fingerprint(canonical, null).toString('hex') });
    expect(canonicalJson(viewedInputs(view.text))).toBe(canonical);
  });

  test('a member that every object inherits is not there: where it is required, it is missing', async () => {
    const without = await register(JSON.stringify({ inputs: inputs({ action: 'odd.required', params: {} }) }));
    const withIt = await register(
      JSON.stringify({ inputs: inputs({ action: 'odd.required', params: { toString: 1 } }) }),
    );

    expect([without.status, without.body['code']]).toEqual([400, 'validation-failed']);
    expect(withIt.status).toBe(201);
  });

  test('a member that every object inherits is not there: where it may be left out, nothing is wrong', async () => {
    const without = await register(JSON.stringify({ inputs: inputs({ action: 'odd.optional', params: {} }) }));
    const wrong = await register(
      JSON.stringify({ inputs: inputs({ action: 'odd.optional', params: { constructor: 1 } }) }),
    );

    expect(without.status).toBe(201);
    expect([wrong.status, wrong.body['code']]).toEqual([400, 'validation-failed']);
  });
});

describe('text is counted in code points', () => {
  test('255 emoji fit into every text of a decision at once, and 4,000 into the long ones', async () => {
    const most = EMOJI.repeat(255);
    const long = EMOJI.repeat(4000);
    const body = {
      inputs: inputs({
        subject: { type: most, id: `${randomUUID()}${EMOJI.repeat(219)}` },
        model: { id: most, version: most },
        retrievalSnapshotId: most,
        policyVersion: most,
      }),
      note: long,
      evidence: { stepId: most, runId: most, toolCallId: most, traceparent: most, rationale: long },
    };
    const first = await register(JSON.stringify(body));
    const found = await stage.auditor.get(
      `/v1/decisions?subjectType=${encodeURIComponent(most)}&stepId=${encodeURIComponent('x')}`,
    );
    const view = await stage.auditor.get(`/v1/decisions/${String(first.body['decisionId'])}`);

    expect(first.status).toBe(201);
    expect(found.status).toBe(200);
    expect(view.body.request.note).toBe(long);
    expect(view.body.subject).toEqual(body.inputs['subject']);
  });

  test.each([
    ['composed and decomposed', 'é', 'e\u0301'],
    ['with and without a space', 'a', 'a '],
    ['with and without a zero-width joiner', 'a', 'a\u200d'],
    ['a noncharacter', '\uffff', '\ufffe'],
    ['a control character', '\u0001', '\u001f'],
    ['right-to-left marks', '\u200f', '\u200e'],
  ])('%s: two texts, two decisions, both as they were sent', async (_name, one, other) => {
    const subject = (id: string): string =>
      JSON.stringify({ inputs: inputs({ subject: { type: `odd ${_name}`, id } }) });
    const [first, second] = [await register(subject(one)), await register(subject(other))];
    const list = await stage.auditor.get(`/v1/decisions?subjectType=${encodeURIComponent(`odd ${_name}`)}`);

    expect([first.status, second.status]).toEqual([201, 201]);
    expect(first.body['contentKey']).not.toBe(second.body['contentKey']);
    expect(list.body.items.map((item: { subject: { id: string } }) => item.subject.id)).toEqual([one, other]);
  });
});

describe('headers that are not understood change nothing', () => {
  test.each([
    'wait',
    'wait=',
    'wait=-1',
    'wait=1.5',
    'wait=abc',
    'wait=99999999999999999999',
    'wait="',
    'wait=5; foo',
    ';;;,,,',
    'respond-async',
    '=',
    '"',
    `${','.repeat(4000)}`,
    'wait=0x5',
    'wait=5wait=6',
    '\u00ff\u00fe',
    'return=minimal, wait = 1',
    `wait=${' '.repeat(4000)}1`,
  ])('Prefer: %s', async (prefer) => {
    const body = JSON.stringify({ inputs: inputs({ subject: { type: 'odd', id: 'prefer' } }) });
    const startedAt = performance.now();
    const { status } = await register(body, `Prefer: ${prefer}`);

    expect(status).toBe(201);
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  });

  test.each([
    ['1 visible character', '!', true],
    ['128 visible characters', '~'.repeat(128), true],
    ['129 characters', 'a'.repeat(129), false],
    ['nothing', '', false],
    ['a space inside', 'a b', false],
    ['a tab inside', 'a\tb', false],
    ['an 8-bit byte', 'a\u00e9', false],
    ['markup', '<script>alert(1)</script>', true],
    ['what JSON would have to escape', '"\\"}', true],
  ])('a request id of %s is %s taken: %s', async (_name, requestId, isTaken) => {
    const sound = await register(
      JSON.stringify({ inputs: inputs({ subject: { type: 'odd', id: 'request-id' } }) }),
      `X-Request-Id: ${requestId}`,
    );
    const bad = await register('{', `X-Request-Id: ${requestId}`);

    for (const id of [sound.headers.get('x-request-id'), bad.headers.get('x-request-id'), bad.body['requestId']]) {
      if (isTaken) expect(id).toBe(requestId);
      else expect(id).toMatch(/^[!-~]{1,128}$/);
    }
  });

  test('two request ids are none', async () => {
    const reply = await register('{', 'X-Request-Id: one', 'X-Request-Id: two');

    expect(reply.headers.get('x-request-id')).not.toContain('one');
    expect(reply.body['requestId']).toBe(reply.headers.get('x-request-id'));
  });
});

test('a credential never ends after the last year that RFC 3339 can write', async () => {
  const { status, body } = await stage.admin.post('/v1/credentials', {
    role: 'auditor',
    name: 'x',
    expiresAt: '9999-12-31T23:59:59-15:00',
  });

  if (status === 201) expect(body.expiresAt).toMatch(/^\d{4}-\d\d-\d\dT/);
  else expect([status, body.code]).toEqual([400, 'validation-failed']);
});
