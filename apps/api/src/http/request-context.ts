import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import type { Caller } from '#access';
import type { Arrival } from '#ledger';
import { Problem } from '#problem';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the guard; null on routes that are open to everyone. */
    caller: Caller | null;
    /** `performance.now()` when the headers had arrived. */
    startedAt: number;
  }
}

export const REQUEST_ID_HEADER = 'x-request-id';

const VISIBLE_ASCII = /^[!-~]{1,128}$/;

/** The caller's request id, if it is 1–128 visible ASCII characters; else one of our own. */
export function requestIdOf(message: IncomingMessage): string {
  const sent = message.headers[REQUEST_ID_HEADER];
  return typeof sent === 'string' && VISIBLE_ASCII.test(sent) ? sent : randomUUID();
}

/** The caller that the guard has found. */
export function callerOf(request: FastifyRequest): Caller {
  if (request.caller === null) throw new Error('The route is open to everyone and has no caller');
  return request.caller;
}

/** The arrival of a request, as the ledger records it. */
export function arrivalOf(request: FastifyRequest): Arrival {
  return { caller: callerOf(request), requestId: request.id, startedAt: request.startedAt };
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The id in a path. What cannot be one is not there. @throws Problem `not-found` */
export function idOf(text: string, what: string): string {
  if (!UUID.test(text)) throw new Problem('not-found', `There is no such ${what}.`);
  return text;
}
