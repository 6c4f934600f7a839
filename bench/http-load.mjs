// A process of its own that sends decisions over HTTP. Jobs come from its parent as messages, results go back.
import { setTimeout as sleep } from 'node:timers/promises';
import { closedLoop, percentilesOf } from './closed-loop.mjs';
import { Connection } from './connection.mjs';
import { serveJobs } from './jobs.mjs';
import {
  BATCH,
  batchBody,
  completionBody,
  freshBody,
  outsideBody,
  recordedBody,
  refusedBody,
  REPLAY_SET,
  takingBody,
  TAKEN_SUBJECTS,
} from './requests.mjs';

/** What each scenario sends, and what it must be answered: any other answer would make its rate a lie. */
const SCENARIOS = {
  created: { body: (number) => freshBody('h', number), status: 201, isReplay: false },
  batch: { body: batchBody, path: '/batch', status: 200, isReplay: false, decisions: BATCH, isQueued: true },
  replayed: { body: recordedBody, status: 201, isReplay: true },
  refused: { body: refusedBody, status: 409, isReplay: false },
  claimed: { body: (number) => outsideBody('bench.call', number), status: 202, isReplay: false },
  // Whoever waits is answered 201 when the worker has made the call and recorded the outcome.
  dispatched: {
    body: (number) => outsideBody('bench.dispatch', number),
    headers: 'prefer: wait=30\r\n',
    status: 201,
    isReplay: false,
    isQueued: true,
  },
};
const COMPLETED = { status: 200, isReplay: false };

/** So many connections record what the scenarios need beforehand. */
const PREPARING = 16;

const sent = { created: 0, batch: 0, replayed: 0, refused: 0, claimed: 0, dispatched: 0, sealed: 0 };

/** A probe pauses so long at most, and at random: it must not keep step with the rounds of the worker. */
const LONGEST_PAUSE_MS = 1_000;

function requestText({ host, token }, body, { path = '', headers = '' } = {}) {
  return (
    `POST /v1/decisions${path} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\n${headers}` +
    `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
  );
}

async function sendChecked(connection, text, { status, isReplay, decisions = 0 }) {
  const answer = await connection.send(text);
  const created = decisions === 0 ? 0 : answer.text.split('"status":201').length - 1;
  if (answer.status !== status || answer.isReplay !== isReplay || created !== decisions) {
    throw new Error(`Expected ${status}${isReplay ? ', replayed' : ''}; the answer was\n${answer.text}`);
  }
  return answer;
}

const openAll = (url, count) => Promise.all(Array.from({ length: count }, () => Connection.open(url)));

/** Records what will be replayed, and takes what will be refused. */
async function prepare(service) {
  const connections = await openAll(service.url, PREPARING);
  const bodies = [
    ...Array.from({ length: REPLAY_SET }, (_, i) => recordedBody(i)),
    ...Array.from({ length: TAKEN_SUBJECTS }, (_, i) => takingBody(i)),
  ].values();
  const record = async (connection) => {
    for (const body of bodies)
      await sendChecked(connection, requestText(service, body), { status: 201, isReplay: false });
    connection.close();
  };
  await Promise.all(connections.map(record));
}

/** Each connection sends what is next, one request at a time; `heard` is given every answer. */
async function drive(connections, seconds, expected, next, heard = () => undefined) {
  const lanes = connections.map(
    (connection) => async (text) => heard((await sendChecked(connection, text, expected)).text),
  );
  return closedLoop(lanes, seconds, next);
}

async function measure({ service, scenario, inFlight, seconds }) {
  const connections = await openAll(service.url, inFlight);
  const expected = SCENARIOS[scenario];
  const next = () => requestText(service, expected.body(sent[scenario]++), expected);
  const sendUntil = performance.now() + seconds * 1000;
  // Where a request takes as long as others are queued before it, the ones under way at the end are part of the work.
  const result = expected.isQueued
    ? await drive(connections, Infinity, expected, () => (performance.now() < sendUntil ? next() : undefined))
    : await drive(connections, seconds, expected, next);
  for (const connection of connections) connection.close();
  return { [scenario]: { ...result, perSecond: result.perSecond * (expected.decisions ?? 1) } };
}

/** Claims for a time, and then completes what was claimed, until there is no more: nobody waits for an effect in between. */
async function measureLeases({ service, inFlight, seconds }) {
  const connections = await openAll(service.url, inFlight);
  const nextClaim = () => requestText(service, SCENARIOS.claimed.body(sent.claimed++));
  const answers = [];
  const claimed = await drive(connections, seconds, SCENARIOS.claimed, nextClaim, (text) => answers.push(text));
  const completions = answers.map((text, i) => completionText(service, text, i)).values();
  const completed = await drive(connections, Infinity, COMPLETED, () => completions.next().value);
  for (const connection of connections) connection.close();
  return { claimed, completed };
}

function completionText(service, answer, number) {
  const { decisionId, lease } = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')));
  return requestText(service, completionBody(lease.token, number), { path: `/${decisionId}/completion` });
}

/**
 * How long a decision that was answered waits for its receipt: each probe records one, asks for its receipt until there is
 * one, and pauses.
 *
 * @param beside so many connections record decisions meanwhile, without a pause
 */
async function measureSealed({ service, probes, beside, seconds }) {
  const [busy, quiet] = [await openAll(service.url, beside), await openAll(service.url, probes)];
  const expected = SCENARIOS.created;
  const load = drive(busy, seconds, expected, () => requestText(service, expected.body(sent.created++)));
  const latencies_ms = [];
  const end = performance.now() + seconds * 1000;
  const probe = async (connection) => {
    while (performance.now() < end) {
      await sleep(Math.random() * LONGEST_PAUSE_MS);
      latencies_ms.push(await untilSealed(service, connection));
    }
  };
  const [created] = await Promise.all([load, ...quiet.map(probe)]);
  for (const connection of [...busy, ...quiet]) connection.close();
  return { perSecond: created.perSecond, ...percentilesOf(latencies_ms), count: latencies_ms.length };
}

/** @returns the milliseconds from the answer to a new decision to its receipt, which a checkpoint comes with */
async function untilSealed(service, connection) {
  const text = requestText(service, freshBody('s', sent.sealed++));
  const answer = await sendChecked(connection, text, SCENARIOS.created);
  const answeredAt = performance.now();
  const { ledgerEntryId } = JSON.parse(answer.text.slice(answer.text.indexOf('\r\n\r\n')));
  const path = `/v1/log/proofs/inclusion?ledgerEntryId=${ledgerEntryId}`;
  await sendChecked(connection, getText(service, path, 'prefer: wait=30\r\n'), { status: 200, isReplay: false });
  return performance.now() - answeredAt;
}

const getText = ({ host, token }, path, headers) =>
  `GET ${path} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\n${headers}\r\n`;

/** Of one decision, recorded now, how long it waits for its receipt: after a load, how far sealing is behind. */
async function measureLag({ service }) {
  const [connection] = await openAll(service.url, 1);
  const lagMs = await untilSealed(service, connection);
  connection.close();
  return { lagMs };
}

serveJobs({ prepare, measure, measureLeases, measureSealed, measureLag });
