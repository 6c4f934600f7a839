import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createHash } from 'node:crypto';
import { Client, inputs } from '../support/index.js';
import { setStage, TRANSACTIONAL, until, type Cast, type Stage } from '../support/stage.js';

let stage: Stage;
let other: Cast;

beforeAll(async () => {
  // One connection for everybody: whatever a failed request leaves in the session, the next tenant would find.
  stage = await setStage({
    env: { DATABASE_POOL_SIZE: '1', LOG_LEVEL: 'debug' },
    actions: { 'note.add': TRANSACTIONAL, 'project.nightingale': TRANSACTIONAL },
  });
  other = await stage.addTenant('other');
  await other.admin.put('/v1/actions/note.add', TRANSACTIONAL);
});

afterAll(async () => {
  await stage?.clear();
});

describe('when the database refuses a write that was thought to be sound', () => {
  const secrets = {
    note: 'note-of-a-patient',
    param: 'iban-DE0212030000',
    rationale: 'rationale-of-a-model',
    key: 'key-that-opens-something-elsewhere',
  };
  let status: number;
  let text: string;

  beforeAll(async () => {
    await stage.database.query('ALTER TABLE ledger_entry ADD CONSTRAINT broken_on_purpose CHECK (false) NOT VALID');
    const body = {
      inputs: inputs({ subject: { type: 'discretion', id: '1' }, params: { iban: secrets.param } }),
      note: secrets.note,
      evidence: { rationale: secrets.rationale },
    };
    ({ status, text } = await stage.orchestrator.decide(body, secrets.key));
    await stage.database.query('ALTER TABLE ledger_entry DROP CONSTRAINT broken_on_purpose');
  });

  test('the caller is told that it was us, and neither what nor where', () => {
    expect(status).toBe(500);
    expect(text).not.toMatch(/ledger_entry|broken_on_purpose|constraint|QueryFailed|\.ts|\.js/i);
  });

  test('the log says what went wrong', async () => {
    const output = async (): Promise<string> => stage.service.output();
    expect(await until(output, (text) => text.includes('broken_on_purpose'))).toContain('broken_on_purpose');
  });

  test.each(Object.entries(secrets))('the log does not repeat the %s', (_name, secret) => {
    expect(stage.service.output()).not.toContain(secret);
  });

  test('nothing is left, and the same request is recorded now', async () => {
    const body = {
      inputs: inputs({ subject: { type: 'discretion', id: '1' }, params: { iban: secrets.param } }),
      note: secrets.note,
    };
    const retried = await stage.orchestrator.decide(body, secrets.key);

    expect([retried.status, retried.headers.get('idempotent-replayed')]).toEqual([201, null]);
  });

  test('the next tenant on the same connection sees none of it', async () => {
    const list = await other.auditor.get('/v1/decisions');
    const record = await other.auditor.get(`/v1/idempotency-records/${secrets.key}`);
    const same = await other.orchestrator.decide({ inputs: inputs() }, secrets.key);

    expect(list.body.items).toEqual([]);
    expect(record.status).toBe(404);
    expect([same.status, same.headers.get('idempotent-replayed')]).toEqual([201, null]);
  });
});

describe('what is written where others read it', () => {
  test('no token, no secret and no hash of one is in the log or in an answer', async () => {
    const issued = await stage.admin.post('/v1/credentials', { role: 'auditor', name: 'to be kept' });
    const list = await stage.admin.get('/v1/credentials');
    await new Client(stage.service.url, issued.body.token).get('/v1/decisions');
    await new Client(stage.service.url, `${issued.body.token}x`).get('/v1/decisions');

    for (const token of [issued.body.token, ...Object.values(stage.tokens)]) {
      const secret = token.split('_').slice(2).join('_');
      const hash = createHash('sha256').update(secret).digest('hex');
      for (const text of [stage.service.output(), list.text]) {
        expect(text).not.toContain(secret);
        expect(text).not.toContain(hash);
      }
    }
  });

  test('a line of the log is one line, whatever a caller calls things', async () => {
    const before = stage.service.output().length;
    await stage.orchestrator.send('GET', '/v1/decisions?x=%0a%7B%22level%22%3A50%7D', {});
    await stage.orchestrator.decide(
      { inputs: inputs({ subject: { type: 'line\n{"level":50}', id: '\u001b[31m' } }) },
      'k',
    );
    const lines = stage.service
      .output()
      .slice(before)
      .split('\n')
      .filter((line) => line !== '');

    for (const line of lines) expect(() => JSON.parse(line)).not.toThrow();
    expect(lines.filter((line) => line.includes('"level":50'))).toEqual([]);
  });
});

describe('a cursor that somebody has made up', () => {
  const forged = (recordedAt: string, decisionId: string): string => {
    const text = `${recordedAt}~${decisionId}`;
    const question = JSON.stringify(['acme', 'asc', []]);
    const check = createHash('sha256').update(`${question}\u0000${text}`).digest('hex').slice(0, 32);
    return Buffer.from(`${text}~${check}`).toString('base64url');
  };
  const ID = '0199c1f0-6b3a-7c52-a1de-5b8c1f0e2d41';

  test.each([
    ['a day that is none', '2026-99-99T00:00:00.000000Z', ID],
    ['an hour that is none', '2026-01-01T99:00:00.000000Z', ID],
    ['the year 0', '0000-01-01T00:00:00.000000Z', ID],
    ['an id of dashes', '2026-01-01T00:00:00.000000Z', '-'.repeat(36)],
    ['an id that is too long in one part', '2026-01-01T00:00:00.000000Z', `${'a'.repeat(35)}-`],
  ])('%s: 400, and never a failure of ours', async (_name, recordedAt, decisionId) => {
    const { status, body } = await stage.auditor.get(`/v1/decisions?cursor=${forged(recordedAt, decisionId)}`);

    expect([status, body.code]).toEqual([400, 'validation-failed']);
  });
});
