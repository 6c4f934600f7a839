// A process of its own: the other system that a dispatched decision calls. It does nothing, and says at once that it did.
import { createServer } from 'node:http';
import { serveJobs } from './jobs.mjs';

const ANSWER = JSON.stringify({ refund: 're_000000000', status: 'done' });

/** @returns where it listens, once it does */
async function open() {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER));
  });
  await new Promise((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  return { host: `127.0.0.1:${server.address().port}` };
}

serveJobs({ open });
