// A process of its own that sends the statement of the service over bare `pg`, without the service.
import 'reflect-metadata';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { decisionRequest, Ledger } from '#ledger';
import { closedLoop } from './closed-loop.mjs';
import { serveJobs } from './jobs.mjs';
import { freshBody } from './requests.mjs';

const SERVICE_ROLE = 'decision_ledger_service';
/** More rows than a round can use are made before it begins: this many times what the fastest one so far used. */
const SURPLUS = 1.5;
const FIRST_GUESS_PER_SECOND = 2000;

/** Large statements wait for each other while a table grows; single ones hardly ever. */
const BATCH_LOCK_TIMEOUT_MS = 2_000;

let made = 0;
/** The fastest rate so far, by how many decisions a statement records. */
const fastest = new Map();
let pool;

/** The session settings are those of the service's pool, so that the statement runs as the same role. */
function open({ databaseUrl, poolSize }) {
  pool = new pg.Pool({
    connectionString: databaseUrl,
    max: poolSize,
    statement_timeout: 30_000,
    idle_in_transaction_session_timeout: 15_000,
    options: `-c role=${SERVICE_ROLE}`,
  });
}

/**
 * The statements that the service would send for new decisions. The service's own ledger makes them, given a database
 * that only listens: statement and rows are the service's by construction, also after either has changed.
 */
async function statements(caller, action, count) {
  const heard = [];
  const listener = {
    statement: async (sql, parameters) => {
      heard.push({ text: sql, values: parameters });
      // A database that is away is not asked a second time.
      throw Object.assign(new Error('heard'), { code: 'ECONNREFUSED' });
    },
  };
  const inventory = { all: async () => new Map([[action.action, action]]), checkParams: () => null };
  const ledger = new Ledger(
    listener,
    inventory,
    { of: () => null },
    {
      responseRetentionOverrideSeconds: null,
      maxQueuedDecisions: Infinity,
    },
  );
  ledger.logger.error = () => undefined;
  for (let i = 0; i < count; i++) {
    const { inputs, note, evidence } = JSON.parse(freshBody('f', made++));
    const request = decisionRequest({ tenantId: caller.tenant, ...inputs }, note, evidence, null);
    const arrival = { caller, requestId: randomUUID(), startedAt: performance.now() };
    await ledger.record(arrival, request, { twinMs: 0, outcomeMs: 0 }).catch(() => undefined);
  }
  if (heard.length !== count) throw new Error(`The ledger sent ${heard.length} statements for ${count} decisions`);
  return heard;
}

/** Statements of one row each as statements of `size` rows each. */
function inBatches(single, size) {
  return Array.from({ length: Math.floor(single.length / size) }, (_, batch) => {
    const rows = single.slice(batch * size, (batch + 1) * size).map(({ values }) => JSON.parse(values[2])[0]);
    const [{ text, values }] = single;
    return {
      text,
      values: [values[0], BATCH_LOCK_TIMEOUT_MS, JSON.stringify(rows.map((row, ordinal) => ({ ...row, ordinal })))],
    };
  });
}

/** @param size how many decisions a statement records */
async function measure({ caller, action, inFlight, seconds, size = 1 }) {
  const guess = fastest.get(size) ?? FIRST_GUESS_PER_SECOND * Math.sqrt(size);
  const single = await statements(caller, action, Math.ceil(seconds * SURPLUS * guess) + size * inFlight);
  const items = (size === 1 ? single : inBatches(single, size)).values();
  const send = async ({ text, values }) => {
    const { rows } = await pool.query(text, values);
    if (rows.length !== size || rows.some(({ disposition }) => disposition !== 'created'))
      throw new Error(`Not created: ${JSON.stringify(rows)}`);
  };
  const lanes = Array.from({ length: inFlight }, () => send);
  const sendUntil = performance.now() + seconds * 1000;
  const result =
    size === 1
      ? await closedLoop(lanes, seconds, () => items.next().value)
      : // As the batches of the service: those under way at the end are waited for and counted.
        await closedLoop(lanes, Infinity, () => (performance.now() < sendUntil ? items.next().value : undefined));
  const perSecond = result.perSecond * size;
  fastest.set(size, Math.max(fastest.get(size) ?? 0, perSecond));
  return { ...result, perSecond };
}

serveJobs({ open, measure, close: () => pool.end() });
