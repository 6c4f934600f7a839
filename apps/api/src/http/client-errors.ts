import { randomUUID } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { Problem } from '#problem';
import { REQUEST_ID_HEADER } from './request-context.js';

/** Answers under way on a connection, and whether it is to end after them. */
interface Pending {
  answers: number;
  endsAfter: boolean;
}

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
      const pending = this.pending.get(socket) ?? { answers: 0, endsAfter: false };
      this.pending.set(socket, pending);
      pending.answers += 1;
      response.once('close', () => {
        pending.answers -= 1;
        if (pending.answers === 0 && pending.endsAfter) socket.end();
      });
    });
    // RFC 9110, section 10.1.1: a server may ignore an expectation other than 100-continue.
    server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  }

  readonly handle = (_error: Error, socket: Duplex): void => {
    const pending = this.pending.get(socket);
    if (pending !== undefined && pending.answers > 0) {
      pending.endsAfter = true;
      return;
    }
    if (!socket.writable) {
      socket.destroy();
      return;
    }
    socket.end(badRequest());
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
