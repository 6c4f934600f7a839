// A caller in an operating-system process of its own. It is given calls over IPC and gives back what was answered. Plain
// JavaScript, so that a test can start it without a build.
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const agent = new http.Agent({ keepAlive: true, maxSockets: Infinity });
const NO_ANSWER_PAUSE_MS = 5;

/** What came over the socket; status 0 and the reason if nothing did. */
function send({ url, path = '/v1/decisions', token, key, headers = {}, body }) {
  const bytes = Buffer.from(JSON.stringify(body));
  const startedAt = performance.now();
  return new Promise((resolve) => {
    const settle = (reply) => resolve({ ...reply, latencyMs: performance.now() - startedAt });
    const unanswered = (error) => settle({ status: 0, headers: {}, text: '', failure: error.code ?? error.message });
    const request = http.request(url + path, {
      agent,
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'content-length': bytes.length,
        ...(key === undefined ? {} : { 'idempotency-key': key }),
        ...headers,
      },
    });
    request.on('error', unanswered);
    request.on('response', (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', unanswered);
      response.on('end', () =>
        settle({ status: response.statusCode, headers: response.headers, text: Buffer.concat(chunks).toString() }),
      );
    });
    request.end(bytes);
  });
}

/** Sends all calls, `width` at a time. */
async function sendAll({ calls, width }) {
  const replies = new Array(calls.length);
  let next = 0;
  const lane = async () => {
    for (let index = next++; index < calls.length; index = next++) replies[index] = await send(calls[index]);
  };
  await Promise.all(Array.from({ length: Math.min(width, calls.length) }, lane));
  return replies;
}

let load = null;

/** Sends calls of a list, chosen by a seeded draw, until it is told to stop; the list may be replaced meanwhile, also by an empty one. */
function startLoad({ calls, width, seed }) {
  const running = { calls, isOver: false, said: new Map() };
  const draw = seeded(seed);
  const lane = async () => {
    while (!running.isOver) {
      if (running.calls.length === 0) {
        await sleep(NO_ANSWER_PAUSE_MS);
        continue;
      }
      const call = running.calls[Math.floor(draw() * running.calls.length)];
      const reply = await send(call);
      note(running.said, call.id, reply);
      if (reply.status === 0 || reply.status >= 500) await sleep(NO_ANSWER_PAUSE_MS);
    }
  };
  running.ended = Promise.all(Array.from({ length: width }, lane));
  load = running;
}

/** Counts answers that say the same; a long load gives too many to keep each. */
function note(said, id, { status, headers, text, failure }) {
  // Every answer that stands for an outcome carries this header.
  const isOutcome = headers['idempotency-expires'] !== undefined;
  const isReplay = headers['idempotent-replayed'] === 'true';
  const kind = failure ?? (isOutcome ? String(status) : `${status} ${codeOf(text)}`);
  const name = JSON.stringify([id, kind, isReplay, isOutcome ? text : null]);
  const known = said.get(name) ?? { id, kind, isReplay, text: isOutcome ? text : null, count: 0 };
  said.set(name, { ...known, count: known.count + 1 });
}

function codeOf(text) {
  try {
    return JSON.parse(text).code ?? text;
  } catch {
    return text;
  }
}

/** Mulberry32. The same in rounds.ts, which this file cannot import. */
function seeded(seed) {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

async function obey(order) {
  switch (order.what) {
    case 'send':
      return sendAll(order);
    case 'start':
      return startLoad(order);
    case 'replace':
      load.calls = order.calls;
      return null;
    case 'stop':
      load.isOver = true;
      await load.ended;
      return [...load.said.values()];
    default:
      throw new Error(`There is no order ${order.what}`);
  }
}

process.on('message', async ({ id, order }) => process.send({ id, answer: (await obey(order)) ?? null }));
process.on('disconnect', () => process.exit(0));
