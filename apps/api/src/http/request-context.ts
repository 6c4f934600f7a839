import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import type { Caller } from '#access';

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
