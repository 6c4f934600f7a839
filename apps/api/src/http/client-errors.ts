import { randomUUID } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { Problem } from '#problem';
import { REQUEST_ID_HEADER } from './request-context.js';

/** The requests of a connection that are not answered yet, and whether it is to end after them. */
interface Pending {
  readonly requests: Set<IncomingMessage>;
  endsAfter: boolean;
}

const hasWhole = ({ requests }: Pending): boolean => [...requests].some(({ complete }) => complete);

/**
 * Answers bytes that are no HTTP, and then ends the connection: nothing after them can be trusted. A request that came
 * whole before them on the same connection gets its own answer first; it may have been recorded.
 */
export class ClientErrors {
  private readonly pending = new WeakMap<Duplex, Pending>();

  /** Follows the answers of a server, so that none is overtaken, and ignores expectations that it does not know. */
  follow(server: Server): void {
    server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
      const { socket } = request;
      const pending = this.pending.get(socket) ?? { requests: new Set(), endsAfter: false };
      this.pending.set(socket, pending);
      pending.requests.add(request);
      response.once('close', () => {
        pending.requests.delete(request);
        if (pending.endsAfter && !hasWhole(pending)) socket.end();
      });
    });
    // RFC 9110, section 10.1.1: a server may ignore an expectation other than 100-continue.
    server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  }

  readonly handle = (_error: Error, socket: Duplex): void => {
    const pending = this.pending.get(socket);
    if (pending !== undefined && hasWhole(pending)) pending.endsAfter = true;
    else if (socket.writable) socket.end(badRequest());
    else socket.destroy();
  };
}

function badRequest(): string {
  const requestId = randomUUID();
  const detail = 'The request is not well-formed HTTP.';
  const problem = new Problem('malformed-request', detail, { members: { errors: [{ pointer: '', detail }] } });
  const body = JSON.stringify(problem.body(requestId));
  return (
    `HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\n${REQUEST_ID_HEADER}: ${requestId}\r\n` +
    `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`
  );
}
