// A process of its own that sends decisions over HTTP. Jobs come from its parent as messages, results go back.
import { closedLoop } from './closed-loop.mjs';
import { Connection } from './connection.mjs';
import { freshBody, recordedBody, refusedBody, REPLAY_SET, takingBody, TAKEN_SUBJECTS } from './requests.mjs';
import { serveJobs } from './jobs.mjs';

/** What each scenario sends, and what it must be answered: any other answer would make its rate a lie. */
const SCENARIOS = {
  created: { body: (number) => freshBody('h', number), status: 201, isReplay: false },
  replayed: { body: recordedBody, status: 201, isReplay: true },
  refused: { body: refusedBody, status: 409, isReplay: false },
};

const sent = { created: 0, replayed: 0, refused: 0 };

function requestText({ url, token }, body) {
  return (
    `POST /v1/decisions HTTP/1.1\r\nhost: ${new URL(url).host}\r\nauthorization: Bearer ${token}\r\n` +
    `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
  );
}

async function sendChecked(connection, text, { status, isReplay }) {
  const answer = await connection.send(text);
  if (answer.status !== status || answer.isReplay !== isReplay) {
    throw new Error(`Expected ${status}${isReplay ? ', replayed' : ''}; the answer was\n${answer.text}`);
  }
}

/** Records what will be replayed, and takes what will be refused. */
async function prepare(service) {
  const connection = await Connection.open(service.url);
  const expected = { status: 201, isReplay: false };
  for (let i = 0; i < REPLAY_SET; i++) await sendChecked(connection, requestText(service, recordedBody(i)), expected);
  for (let i = 0; i < TAKEN_SUBJECTS; i++) await sendChecked(connection, requestText(service, takingBody(i)), expected);
  connection.close();
}

async function measure({ service, scenario, inFlight, seconds }) {
  const connections = await Promise.all(Array.from({ length: inFlight }, () => Connection.open(service.url)));
  const expected = SCENARIOS[scenario];
  const head = requestText(service, '').replace('content-length: 0\r\n\r\n', '');
  const next = () => {
    const body = expected.body(sent[scenario]++);
    return `${head}content-length: ${body.length}\r\n\r\n${body}`;
  };
  const lanes = connections.map((connection) => (text) => sendChecked(connection, text, expected));
  const result = await closedLoop(lanes, seconds, next);
  for (const connection of connections) connection.close();
  return result;
}

serveJobs({ prepare, measure });
