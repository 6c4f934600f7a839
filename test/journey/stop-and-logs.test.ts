import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { Client, inputs } from '../support/index.js';
import { setStage, TRANSACTIONAL, until, type Stage } from '../support/stage.js';

let stage: Stage;
beforeAll(async () => {
  stage = await setStage({ actions: { 'note.add': TRANSACTIONAL, 'refund.create': TRANSACTIONAL } });
});
afterAll(() => stage?.clear());

describe('a stop by SIGTERM', () => {
  test.each(['keep-alive', 'close'])(
    'finishes what is in flight, and exits with 0 (connection: %s)',
    async (connection) => {
      const service = await stage.addService();
      const url = new URL(service.url);
      const orchestrator = new Client(service.url, stage.tokens.orchestrator);
      const holder = new pg.Client({ connectionString: stage.database.url });
      await holder.connect();
      await holder.query('BEGIN; LOCK TABLE refund IN ACCESS EXCLUSIVE MODE');
      const asked = inputs({ action: 'refund.create', subject: { type: 'case', id: connection } });
      const flying = orchestrator.post(
        '/v1/decisions',
        { inputs: asked },
        {
          'idempotency-key': `flying-${connection}`,
          prefer: 'wait=20',
          ...(connection === 'close' ? { connection } : {}),
        },
      );
      const waiters = await until(
        () =>
          stage.database.count(
            `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
          ),
        (n) => n > 0,
      );
      expect(waiters).toBeGreaterThan(0);
      const stopped = service.stop();
      expect(
        await until(
          () => isListening(url),
          (listening) => !listening,
        ),
      ).toBe(false);
      await holder.query('ROLLBACK');
      await holder.end();
      expect((await flying).status).toBe(201);
      expect(await stopped).toBe(0);
      expect((await stage.auditor.get(`/v1/idempotency-records/flying-${connection}`)).status).toBe(200);
    },
  );

  function isListening({ hostname, port }: URL): Promise<boolean> {
    return new Promise((resolve) => {
      const socket = connect(Number(port), hostname);
      socket.on('connect', () => (socket.destroy(), resolve(true))).on('error', () => resolve(false));
    });
  }
});

describe('logs', () => {
  test.each(['info', 'debug'])('at level %s no line holds a whole key, a secret or what was decided', async (level) => {
    const service = await stage.addService({ LOG_LEVEL: level });
    const orchestrator = new Client(service.url, stage.tokens.orchestrator);
    const key = `whole-client-key-of-${level}`;
    const asked = (id: string, action = 'note.add'): Record<string, unknown> => ({
      inputs: inputs({ action, subject: { type: 'case', id: `${id}-${level}` }, params: { hush: 'params-value' } }),
      note: 'note-value',
    });
    const { body } = await orchestrator.decide(asked('a'));
    await orchestrator.decide(asked('b'), key);
    await orchestrator.decide(asked('c'), key);
    await orchestrator.decide(asked('d', 'no.such'), `${key}-unknown`);
    await orchestrator.get(`/v1/idempotency-records/${key}`);
    await orchestrator.get(`/v1/decisions?key=${key}`);
    await orchestrator.post('/v1/decisions/batch', { decisions: [{ ...asked('e'), idempotencyKey: `${key}-batch` }] });
    // A statement that fails carries its parameters in the driver's error.
    await stage.database.query('ALTER TABLE effect RENAME TO effect_away');
    const broken = [
      await orchestrator.decide(asked('f'), `${key}-broken`),
      await orchestrator.decide(asked('g', 'refund.create'), `${key}-broken-too`),
    ];
    await stage.database.query('ALTER TABLE effect_away RENAME TO effect');
    expect(broken.map(({ status }) => status)).toEqual([500, 500]);
    const last = await orchestrator.decide(asked('h'), `${key}-last`);
    await until(
      async () => service.output(),
      (lines) => lines.includes(last.body.decisionId),
    );
    await service.stop();
    const lines = service.output();
    expect(lines).toContain(last.body.decisionId);
    for (const hidden of [key, body.contentKey, 'params-value', 'note-value', stage.tokens.orchestrator])
      expect(lines).not.toContain(hidden);
  });
});
