// An orchestrator in an operating-system process of its own: decides once, over a file store, and runs the effect at the fake
// provider if it is the one to run it. What it did and was told stands in a file that is only appended to.
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, fileStore, NoEffect, Refusal } from '../../dist/libs/client/src/index.js';

const life = JSON.parse(process.env['LIFE']);
const TRIES_AT_PROVIDER = 6;
const PAUSE_MS = 60;
/** The errors after which the same is to be decided again, and how often that is done in one life. */
const COME_BACK = new Set(['Unavailable', 'StillInFlight', 'LeaseLost', 'RunFailed', 'TimeoutError']);
const TIMES = 3;

function note(line) {
  appendFileSync(life.log, `${JSON.stringify({ at: Date.now(), who: life.name, pid: process.pid, ...line })}\n`);
}

/** Notes the bytes of every answer that stands for an outcome, before the client makes anything of them. */
async function watchedFetch(url, options) {
  const response = await fetch(url, options);
  const text = await response.text();
  const body = text.startsWith('{') ? JSON.parse(text) : {};
  const route = /\/(lease|completion|failure)$/.exec(url)?.[1] ?? 'register';
  if (body.outcome !== undefined || body.code === 'refused')
    note({ what: 'told', route, status: response.status, text });
  return new Response(text, { status: response.status, headers: response.headers });
}

async function call(key, signal) {
  const response = await fetch(life.provider, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify(life.inputs.params),
    signal: AbortSignal.any([signal, AbortSignal.timeout(life.callTimeoutMs)]),
  });
  const text = await response.text();
  if (response.status === 402) throw new Refusal('declined');
  if (response.status === 429) throw new NoEffect('It was too busy.');
  if (!response.ok) throw new Error(`It answered ${response.status}.`);
  return JSON.parse(text).reference;
}

/** Where the provider acts once for a key, what brought no answer is asked again. */
async function callUntilAnswered(key, signal) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await call(key, signal);
    } catch (error) {
      if (error instanceof Refusal || signal.aborted) throw error;
      if (tries === TRIES_AT_PROVIDER) throw new Error('There was no answer.', { cause: error });
    }
    await sleep(PAUSE_MS);
  }
}

async function run({ downstreamKeys, lease, signal }) {
  note({ what: 'runs', lease: lease.number });
  await sleep(life.beforeCallMs);
  signal.throwIfAborted();
  const reference = await (life.knowsKeys ? callUntilAnswered : call)(downstreamKeys.key, signal);
  await sleep(life.afterCallMs);
  return { reference, lease: lease.number };
}

const { url, token, tenant, timeoutMs } = life;
const retry = { tries: 10, baseMs: 100, capMs: 1_000, budgetMs: 8_000, timeoutMs };
const ledger = createClient({
  url,
  token,
  tenant,
  store: fileStore(life.store),
  retry,
  waitSeconds: 1,
  fetch: watchedFetch,
});

async function decide() {
  try {
    const { outcome } = await ledger.decide(life.inputs, life.execution === 'caller' ? run : undefined, {
      key: life.key,
      ...(life.abortMs === null ? {} : { signal: AbortSignal.timeout(life.abortMs) }),
    });
    note({ what: 'says', result: outcome.result });
    return false;
  } catch (error) {
    note({ what: 'says', error: error.name, state: error.state, message: error.message });
    return COME_BACK.has(error.name);
  }
}

// Whoever started this process waits for it to be there before anything happens to it.
process.stdout.write('.');
for (let times = 1; (await decide()) && times < TIMES; times += 1) await sleep(PAUSE_MS);
