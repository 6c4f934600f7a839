// Another system, in an operating-system process of its own. What it does with a call is said by the call: the params that
// are its body may carry a `script`, one step for each arrival of the key; the last step stays. Everything that arrived and
// everything that was done stands in a file that is only appended to, so the counts survive a restart.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const [port, file] = [Number(process.argv[2]), process.argv[3]];
const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean).map(JSON.parse) : [];
const underWay = new Map();

function note(line) {
  lines.push(line);
  appendFileSync(file, `${JSON.stringify(line)}\n`);
}

/** Acts once for a key, unless the call says that this system knows no keys. */
function act(key, knowsKeys) {
  if (knowsKeys && lines.some((line) => line.what === 'effect' && line.key === key)) return;
  note({ what: 'effect', key });
}

function bodyOf(step, key, headers) {
  if (step.bytes !== undefined) return Buffer.alloc(step.bytes, 'x');
  if (step.echo) return JSON.stringify({ headers });
  return step.text ?? JSON.stringify({ reference: `ref-${key}` });
}

/** The headers of an answer, in which `$name` stands for a header of the request. */
function headersOf({ headers = {} }, sent) {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, value.replace(/\$([a-z-]+)/, (_, of) => sent[of])]),
  );
}

function keyOf(request, url) {
  return request.headers[url.searchParams.get('keyHeader') ?? 'idempotency-key'];
}

async function answer(request, response, url, body) {
  const key = keyOf(request, url);
  const arrivals = lines.filter((line) => line.what === 'arrival' && line.key === key).length;
  const overlaps = (underWay.get(key) ?? 0) > 0;
  note({
    what: 'arrival',
    key,
    at: Date.now(),
    path: url.pathname,
    method: request.method,
    headers: request.headers,
    body,
    overlaps,
  });
  underWay.set(key, (underWay.get(key) ?? 0) + 1);
  response.on('close', () => underWay.set(key, underWay.get(key) - 1));

  const { script = [{}] } = body.startsWith('{') ? JSON.parse(body) : {};
  const step = script[Math.min(arrivals, script.length - 1)];
  const knowsKeys = !url.searchParams.has('forgets');
  await sleep(step.waitBeforeMs ?? 0);
  if (step.acts ?? (step.status ?? 200) < 300) act(key, knowsKeys);
  await sleep(step.waitMs ?? 0);
  if (step.drop) return request.socket.resetAndDestroy();
  if (step.askedForInMs !== undefined) {
    response.sendDate = false;
    response.setHeader('retry-after', new Date(Date.now() + step.askedForInMs).toUTCString());
  }
  response.writeHead(step.status ?? 200, { 'content-type': 'application/json', ...headersOf(step, request.headers) });
  if (step.breakOff) {
    response.write('{"half":');
    return sleep(20).then(() => request.socket.destroy());
  }
  if (step.endless) {
    response.write('{"endless":"');
    const pour = setInterval(() => response.write('x'.repeat(1024)), 5);
    return response.on('close', () => clearInterval(pour));
  }
  response.end(bodyOf(step, key, request.headers));
}

const server = http.createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', async () => {
    const url = new URL(request.url, 'http://provider');
    await answer(request, response, url, Buffer.concat(chunks).toString()).catch(() => undefined);
    note({ what: 'end', key: keyOf(request, url) });
  });
});
server.listen(port, '127.0.0.1', () => process.send({ port: server.address().port }));
process.on('disconnect', () => process.exit(0));
