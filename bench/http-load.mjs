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

/** So many connections record what the scenarios need beforehand. */
const PREPARING = 16;

const sent = { created: 0, replayed: 0, refused: 0 };

function requestText({ host, token }, body) {
  return (
    `POST /v1/decisions HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\n` +
    `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
  );
}

async function sendChecked(connection, text, { status, isReplay }) {
  const answer = await connection.send(text);
  if (answer.status !== status || answer.isReplay !== isReplay) {
    throw new Error(`Expected ${status}${isReplay ? ', replayed' : ''}; the answer was\n${answer.text}`);
  }
}

const openAll = (url, count) => Promise.all(Array.from({ length: count }, () => Connection.open(url)));

/** Records what will be replayed, and takes what will be refused. */
async function prepare(service) {
  const connections = await openAll(service.url, PREPARING);
  const bodies = [
    ...Array.from({ length: REPLAY_SET }, (_, i) => recordedBody(i)),
    ...Array.from({ length: TAKEN_SUBJECTS }, (_, i) => takingBody(i)),
  ].values();
  const drive = async (connection) => {
    for (const body of bodies)
      await sendChecked(connection, requestText(service, body), { status: 201, isReplay: false });
    connection.close();
  };
  await Promise.all(connections.map(drive));
}

async function measure({ service, scenario, inFlight, seconds }) {
  const connections = await openAll(service.url, inFlight);
  const expected = SCENARIOS[scenario];
  const next = () => requestText(service, expected.body(sent[scenario]++));
  const lanes = connections.map((connection) => (text) => sendChecked(connection, text, expected));
  const result = await closedLoop(lanes, seconds, next);
  for (const connection of connections) connection.close();
  return result;
}

serveJobs({ prepare, measure });
