import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { canonicalJson, deriveContentKey, fingerprint, type DecisionInputs } from '#key';
import { populate } from '../../bench/population.mjs';
import type { DecisionListRow } from '#ledger';
import type { Client } from '../support/index.js';
import { setDispatchStage, type DispatchStage } from '../support/dispatching.js';
import { migratedDatabase } from '../support/schema.js';
import { putActions, type Cast } from '../support/stage.js';
import type { TestDatabase } from '../support/database.js';

const DECISIONS = 2_000;
const ATTEMPTS = 5_000;
const TENANTS = ['birch', 'cedar', 'dogwood'];
/** With this seed even a small population has something of every kind. */
const SEED = 17;

let stage: DispatchStage;
let birch: Cast;
let made: { decisions: number; attempts: number };

async function fill(database: TestDatabase): Promise<typeof made> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    return await populate(client, { decisions: DECISIONS, seed: SEED, tenants: TENANTS });
  } finally {
    await client.end();
  }
}

beforeAll(async () => {
  stage = await setDispatchStage();
  birch = await stage.addTenant('birch');
  made = await fill(stage.database);
});
afterAll(() => stage?.clear());

interface HashedRow {
  inputs: string;
  note: string | null;
  key_source: string;
  idem_key: string;
  fingerprint: string;
  content_key: string;
}

/** All rows of a list, page by page. */
async function walk(client: Client, path: string): Promise<DecisionListRow[]> {
  const items: DecisionListRow[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const reply = await client.get(`${path}${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`);
    expect(reply.status).toBe(200);
    items.push(...reply.body.items);
    cursor = reply.body.nextCursor;
  }
  return items;
}

describe('a population', () => {
  test('has as many decisions and attempts as were asked for, half of them with the first tenant', async () => {
    const count = (of: string): Promise<number> => stage.database.count(`SELECT count(*) FROM ${of}`);
    expect(made).toEqual({ decisions: DECISIONS, attempts: ATTEMPTS });
    expect(await count('decision_record')).toBe(DECISIONS);
    expect(await count('attempt')).toBe(ATTEMPTS);
    expect(await count(`decision_record WHERE tenant_id = 'birch'`)).toBe(DECISIONS / 2);
    expect(await count(`(SELECT DISTINCT tenant_id FROM decision_record) t`)).toBe(TENANTS.length);
  });

  test('is spread over two years, and few subjects have many decisions', async () => {
    const months = await stage.database.count(
      `SELECT count(DISTINCT date_trunc('month', received_at)) FROM decision_record`,
    );
    const [{ first, fewest } = { first: 0, fewest: 0 }] = await stage.database.query<{ first: number; fewest: number }>(
      `SELECT max(n)::integer AS first, percentile_disc(0.5) WITHIN GROUP (ORDER BY n)::integer AS fewest
         FROM (SELECT count(*) AS n FROM decision_record GROUP BY subject_id) s`,
    );
    expect(months).toBeGreaterThanOrEqual(24);
    expect(first).toBeGreaterThan(10 * fewest);
  });

  test('has every state, both outcomes, every key source, and nearly every disposition', async () => {
    const values = async (sql: string): Promise<unknown[]> =>
      (await stage.database.query<{ v: unknown }>(`SELECT DISTINCT ${sql} ORDER BY 1`)).map(({ v }) => v);
    expect(await values('status AS v FROM idempotency_record')).toEqual([
      'completed',
      'failed',
      'in_flight',
      'unknown',
    ]);
    expect(await values('outcome AS v FROM ledger_entry')).toEqual(['applied', 'refused']);
    expect(await values('key_source AS v FROM decision_record')).toEqual(['client', 'content']);
    expect(await values('action_version AS v FROM decision_record')).toEqual([1, 2, 3]);
    // Nobody has resolved anything.
    expect(await values('disposition AS v FROM attempt')).toEqual(
      'completed,created,failed,in_flight,lease_lost,mismatch,reclaimed,refused,renewed,replayed,same_content,unknown'.split(
        ',',
      ),
    );
  });

  test('is the same again from the same seed', async () => {
    const digest = async (database: TestDatabase): Promise<unknown> =>
      database.query(
        `SELECT (SELECT md5(string_agg(concat(decision_id, idem_key, fingerprint), '' ORDER BY decision_id)) FROM decision_record WHERE tenant_id = ANY ($1)) AS decisions,
                (SELECT md5(string_agg(concat(ledger_entry_id, outcome, recorded_at, refusal), '' ORDER BY ledger_entry_id)) FROM ledger_entry WHERE tenant_id = ANY ($1)) AS entries,
                (SELECT md5(string_agg(concat(attempt_id, disposition, decision_id, evidence, credential_id), '' ORDER BY attempt_id)) FROM attempt WHERE tenant_id = ANY ($1)) AS attempts`,
        [TENANTS],
      );
    const another = await migratedDatabase();
    try {
      await fill(another);
      expect(await digest(another)).toEqual(await digest(stage.database));
    } finally {
      await another.drop();
    }
  });
});

describe('what reads a population', () => {
  test('the list has every decision of the tenant once, and each can be looked at with its key', async () => {
    const items = await walk(birch.auditor, '/v1/decisions?limit=500');
    expect(new Set(items.map(({ decisionId }) => decisionId)).size).toBe(DECISIONS / 2);
    expect(items).toHaveLength(DECISIONS / 2);
    const kinds = new Map(
      items.map((row) => [[row.action, row.state, row.outcome?.reason, row.keySource].join(), row]),
    );
    expect(kinds.size).toBeGreaterThan(20);
    for (const row of kinds.values()) {
      const one = await birch.auditor.get(`/v1/decisions/${row.decisionId}`);
      const record = await birch.auditor.get(`/v1/idempotency-records/${row.key}`);
      expect(one.body).toMatchObject({ ...row, request: { firstEvidence: { runId: expect.any(String) } } });
      expect(one.body.attempts.total).toBeGreaterThan(0);
      expect(record.body).toMatchObject({
        key: row.key,
        decisionId: row.decisionId,
        fingerprint: one.body.fingerprint,
      });
      expect(['expired', row.state]).toContain(record.body.status);
    }
  });

  test('a key that is bound to the decision of another is found', async () => {
    const bound = await stage.database.query<{ idem_key: string; decision_id: string }>(
      `SELECT idem_key, decision_id FROM bound_key WHERE tenant_id = 'birch'`,
    );
    expect(bound.length).toBeGreaterThan(0);
    for (const { idem_key: key, decision_id: decisionId } of bound)
      expect((await birch.auditor.get(`/v1/idempotency-records/${key}`)).body).toMatchObject({ key, decisionId });
  });
});

describe('the service takes a population for its own', () => {
  test('its keys, hashes and canonical texts are the ones that the service derives', async () => {
    const rows = await stage.database.query<HashedRow>(
      `SELECT inputs, note, key_source, idem_key, encode(fingerprint, 'hex') AS fingerprint, content_key(tenant_id, content_hash) AS content_key
         FROM decision_record WHERE tenant_id = ANY ($1)`,
      [TENANTS],
    );
    for (const row of rows) {
      const given: DecisionInputs = JSON.parse(row.inputs);
      const { canonical, key } = deriveContentKey(given);
      expect(canonical).toBe(row.inputs);
      expect(row.content_key).toBe(key);
      expect(row.key_source === 'content' ? row.idem_key : key).toBe(key);
      expect(row.fingerprint).toBe(fingerprint(canonical, row.note).toString('hex'));
    }
  });

  test('the rules of its actions are canonical, and read like those that were put', async () => {
    const rows = await stage.database.query<{ rules: string; execution: string }>(
      `SELECT DISTINCT rules, rules::json->>'execution' AS execution FROM action_version WHERE tenant_id = ANY ($1)`,
      [TENANTS],
    );
    await stage.act('rules.dispatched');
    await putActions(stage.admin, {
      'rules.caller': { execution: 'caller' },
      'rules.transactional': { execution: 'transactional' },
    });
    const members = (text = '{}'): unknown => {
      const rules = JSON.parse(text) as { dispatch?: object };
      return [Object.keys(rules), Object.keys(rules.dispatch ?? {})];
    };
    for (const { rules, execution } of rows) {
      expect(rules).toBe(canonicalJson(JSON.parse(rules)));
      const [put] = await stage.database.query<{ rules: string }>(
        `SELECT rules FROM action_version WHERE action = $1`,
        [`rules.${execution}`],
      );
      expect(members(rules)).toEqual(members(put?.rules));
    }
  });

  test('a request of it that is sent again is replayed, and with the same bytes after its response was pruned', async () => {
    const rows = await stage.database.query<{
      inputs: string;
      note: string | null;
      idem_key: string;
      key_source: string;
      body: string;
      decision_id: string;
    }>(
      `SELECT DISTINCT ON (d.action, i.response_status) d.inputs, d.note, d.idem_key, d.key_source, i.response_body AS body, d.decision_id
         FROM decision_record d JOIN idempotency_record i USING (tenant_id, idem_key)
        WHERE d.tenant_id = 'birch' AND i.response_body IS NOT NULL ORDER BY d.action, i.response_status, d.decision_id`,
    );
    expect(rows.length).toBeGreaterThan(8);
    for (const { inputs: given, note, idem_key: key, key_source: source, body, decision_id: id } of rows) {
      const request = { inputs: JSON.parse(given), ...(note === null ? {} : { note }) };
      const send = () => birch.orchestrator.decide(request, source === 'client' ? key : undefined);
      const stored = await send();
      await stage.database.query(`DELETE FROM idempotency_record WHERE tenant_id = 'birch' AND idem_key = $1`, [key]);
      const pruned = await send();
      for (const reply of [stored, pruned]) {
        expect(reply.headers.get('idempotent-replayed')).toBe('true');
        expect(reply.body.decisionId).toBe(id);
        expect(reply.text).toBe(body);
      }
    }
  });
});
