/**
 * Decides once, over a file store, and dies by `kill -9` at the point that `DIE_AT` names. Each effect is a line of the file
 * EFFECTS: the lease's number and the downstream key.
 */
import { appendFileSync } from 'node:fs';
import { createClient, fileStore } from '@decision-ledger/client';

const { SETTINGS, INPUTS, STORE, EFFECTS, DIE_AT = 'never', RUN_MS = '0' } = process.env;

function passing(point) {
  if (point === DIE_AT) process.kill(process.pid, 'SIGKILL');
}

/** The point before a request is sent, and the one after its answer is here. */
async function watchedFetch(url, options) {
  const route = /\/(lease|completion|failure)$/.exec(url)?.[1] ?? 'register';
  passing(`before ${route}`);
  const response = await fetch(url, options);
  const text = await response.text();
  passing(`after ${route}`);
  return new Response(text, { status: response.status, headers: response.headers });
}

const files = fileStore(STORE);
const store = {
  ...files,
  async create(name, text) {
    const isCreated = await files.create(name, text);
    if (name.includes('.')) passing('after the right to run was taken');
    return isCreated;
  },
};

const retry = { tries: 10, baseMs: 20, capMs: 200 };
const ledger = createClient({ ...JSON.parse(SETTINGS), store, retry, waitSeconds: 4, fetch: watchedFetch });

try {
  const { outcome, replayed } = await ledger.decide(JSON.parse(INPUTS), async ({ lease, downstreamKeys }) => {
    passing('before the effect');
    appendFileSync(EFFECTS, `${lease.number} ${downstreamKeys.uuid4}\n`);
    passing('after the effect');
    await new Promise((resolve) => setTimeout(resolve, Number(RUN_MS)));
    return { number: lease.number };
  });
  console.log(JSON.stringify({ result: outcome.result, replayed }));
} catch (error) {
  console.log(JSON.stringify({ error: error.name, message: error.message, state: error.state }));
}
