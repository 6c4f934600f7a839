import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { BAD_BYTES } from '../support/bad-bytes.js';
import { Random, type Attempt, type Scene, type Variant } from '../support/bad-case.js';
import { BAD_HEADERS } from '../support/bad-headers.js';
import { BAD_RULES } from '../support/bad-rules.js';
import { BAD_SHAPES } from '../support/bad-shapes.js';
import { BAD_TARGETS } from '../support/bad-targets.js';
import { inputs, operator } from '../support/index.js';
import { rounds } from '../support/rounds.js';
import { setStage, type Stage } from '../support/stage.js';
import { rowCounts, type RowCounts } from '../support/row-counts.js';
import { exchange, type WireReply } from '../support/wire.js';

const WHOLE = 5_000;
const AT_ONCE = 8;
const MEMORY_MOST_BYTES = 600 * 1024 * 1024;

const FAMILIES: readonly (readonly [name: string, variants: readonly Variant[]])[] = [
  ['bytes', BAD_BYTES],
  ['shapes', BAD_SHAPES],
  ['headers', BAD_HEADERS],
  ['targets', BAD_TARGETS],
  ['rules', BAD_RULES],
];
const EACH = Math.ceil(rounds(WHOLE) / FAMILIES.reduce((sum, [, variants]) => sum + variants.length, 0));

let stage: Stage;
let scene: Scene;
let before: RowCounts;

beforeAll(async () => {
  // Sealing goes on after the answer, and would change what is counted.
  stage = await setStage({ env: { WORKER: 'off' } });
  const first = await stage.orchestrator.decide({ inputs: inputs() }, 'first-key');
  scene = {
    tokens: { ...stage.tokens, operator: await operator(stage.database.url, 'create') },
    decisionId: first.body.decisionId,
    key: first.body.key,
    contentKey: first.body.contentKey,
    credentialId: stage.tokens.admin.split('_')[1] ?? '',
  };
  before = await rowCounts(stage.database);
});

afterAll(async () => {
  await stage?.clear();
});

/** What is wrong with an answer: one line each. */
function complaints({ status, code }: Variant, { pointer }: Attempt, reply: WireReply | undefined): string[] {
  if (reply === undefined) return ['there was no answer'];
  const wrong: string[] = [];
  const complain = (isWrong: boolean, what: string): void => void (isWrong && wrong.push(what));
  const isStatus = status === '4xx' ? reply.status >= 400 && reply.status < 500 : reply.status === status;
  complain(!isStatus, `the status is ${reply.status}, not ${status}`);
  complain(!(reply.headers.get('content-type') ?? '').startsWith('application/problem+json'), 'it is no problem+json');
  const requestId = reply.headers.get('x-request-id');
  complain(requestId === null, 'it has no x-request-id');
  const body = problemOf(reply);
  if (body === null) return [...wrong, `the body is no problem: ${reply.text.slice(0, 120)}`];
  if (code !== undefined) complain(body['code'] !== code, `the code is ${String(body['code'])}, not ${code}`);
  complain(body['type'] !== `urn:decision-ledger:problem:${String(body['code'])}`, 'type and code disagree');
  complain(body['status'] !== reply.status, 'the status in the body is another');
  complain(body['requestId'] !== requestId, 'the requestId in the body is another');
  complain(typeof body['title'] !== 'string' || typeof body['detail'] !== 'string', 'title or detail is missing');
  complain(body['retryable'] !== false, 'it claims that a retry would help');
  if (reply.status === 400 && code !== 'invalid-idempotency-key')
    complain(!namesAPlace(body['errors']), 'it names no place');
  if (pointer !== undefined) {
    const pointers = namesAPlace(body['errors']) ? body['errors'].map((error) => error.pointer) : [];
    complain(!pointers.includes(pointer), `it names ${JSON.stringify(pointers)}, not ${JSON.stringify(pointer)}`);
  }
  return wrong;
}

function problemOf({ text }: WireReply): Record<string, unknown> | null {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null ? { ...body } : null;
  } catch {
    return null;
  }
}

function namesAPlace(errors: unknown): errors is { pointer: string; detail: string }[] {
  return (
    Array.isArray(errors) &&
    errors.length > 0 &&
    errors.every((e) => typeof e.pointer === 'string' && typeof e.detail === 'string')
  );
}

/** Sends many bad requests of one kind, some at once, and gives back what was wrong with the answers. */
async function complaintsAbout(variant: Variant): Promise<string[]> {
  const random = new Random(variant.name);
  const attempts = Array.from({ length: EACH }, () => variant.make(random, scene));
  const wrong: string[] = [];
  const sendNext = async (): Promise<void> => {
    for (let attempt = attempts.pop(); attempt !== undefined; attempt = attempts.pop()) {
      const { replies } = await exchange(stage.service.url, attempt.bytes);
      const found = complaints(variant, attempt, replies[0]);
      if (found.length > 0) wrong.push(`${attempt.sent} => ${found.join('; ')}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, sendNext));
  return wrong;
}

/** To learn that something is not there is a reading, and on record; whoever is refused has read nothing. */
function mattering({ access, access_end: end, ...others }: RowCounts, { status }: Variant): RowCounts {
  return status === 404 || status === '4xx' ? others : { access: access ?? 0, access_end: end ?? 0, ...others };
}

describe.each(FAMILIES)('bad %s', (_name, variants) => {
  test.each(variants.map((variant) => [variant.name, variant.status, variant.code ?? 'any', variant] as const))(
    '%s: %s %s, and nothing is written',
    async (_variantName, _status, _code, variant) => {
      const wrong = await complaintsAbout(variant);
      const then = before;
      before = await rowCounts(stage.database);

      expect(wrong).toEqual([]);
      expect(mattering(before, variant)).toEqual(mattering(then, variant));
    },
  );
});

describe('afterwards', () => {
  test('the same process is alive, serves, and has not grown out of bounds', async () => {
    const health = await stage.orchestrator.get('/healthz');
    const metrics = await stage.orchestrator.get('/metrics');
    const again = await stage.orchestrator.decide({ inputs: inputs() }, 'first-key');
    const [, resident] = /^process_resident_memory_bytes (\S+)$/m.exec(metrics.text) ?? [];

    expect(health.status).toBe(200);
    expect(again.status).toBe(201);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(Number(resident)).toBeLessThan(MEMORY_MOST_BYTES);
  });

  test('no request is left under way, and no failure of ours was logged', async () => {
    const metrics = await stage.orchestrator.get('/metrics');
    const errors = stage.service
      .output()
      .split('\n')
      .filter((line) => line.includes('"level":50'));

    expect(/^requests_in_flight (\S+)$/m.exec(metrics.text)?.[1]).toBe('1');
    expect(errors).toEqual([]);
  });
});
