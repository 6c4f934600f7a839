import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { JsonValue } from '#key';
import { AnswerReader } from './answer-reader.js';
import { retryAfterMs } from './pause.js';
import { ADDRESS_NOT_ALLOWED, type DispatchTargets } from './targets.js';

/** A call as an action describes it. */
export interface Call {
  readonly url: string;
  readonly keyHeader: string;
  /** The key in the form that the downstream takes. */
  readonly key: string;
  /** RFC 8785 bytes of the params. */
  readonly body: string;
  readonly timeoutMs: number;
  /** Header names, each with the variable that its value comes from. */
  readonly secretVariables: Readonly<Record<string, string>>;
}

/** What the caller keeps in its hand while the call is made. */
export interface CallGuard {
  /** Asked at the last moment before the first byte is sent: whether the lease is still held. */
  readonly maySend: () => boolean;
  /** What time it is where the next try will be due: by the database's clock, in milliseconds since 1970. */
  readonly now: () => number;
  /** Ends the call wherever it is. */
  readonly signal: AbortSignal;
}

/** What became of a call. */
export type CallOutcome =
  | { readonly kind: 'applied'; readonly status: number; readonly result: JsonValue }
  | { readonly kind: 'refused'; readonly status: number }
  | {
      readonly kind: 'again';
      /** False only if surely nothing reached the downstream. */
      readonly mayHaveHappened: boolean;
      readonly status: number | null;
      /** Why there was no answer, as a short code. */
      readonly failure: string | null;
      readonly retryAfterMs: number | null;
      /** Whether it speaks for a host that is down. */
      readonly isHostDown: boolean;
    };

/** Statuses of a client's mistake that are nobody's mistake: a later try may fare better. */
const AGAIN_STATUSES = new Set([408, 409, 425, 429]);
/** What a gateway says for a host that does not answer. */
const DOWN_STATUSES = new Set([502, 503, 504]);

/** A try that surely had no effect, for a reason on this side of the wire. */
export function notSent(failure: string): CallOutcome {
  return { kind: 'again', mayHaveHappened: false, status: null, failure, retryAfterMs: null, isHostDown: false };
}

/**
 * Makes a call, once, and tells what became of it; never throws for anything that the downstream does. Redirects are not
 * followed. The connection is a new one: on a kept one, a reset would not tell whether the request had been read.
 */
export async function sendCall(call: Call, targets: DispatchTargets, guard: CallGuard): Promise<CallOutcome> {
  const url = new URL(call.url);
  if (!targets.allowsHost(url) || !targets.allowsLiteral(url)) return notSent('host-not-allowed');
  const secrets: Record<string, string> = {};
  for (const [name, variable] of Object.entries(call.secretVariables)) {
    const value = targets.secret(variable);
    if (value === undefined) return notSent('unknown-secret');
    secrets[name] = value;
  }
  let request: ClientRequest;
  try {
    request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, {
      method: 'POST',
      agent: false,
      lookup: targets.lookupFor(url),
      headers: {
        accept: 'application/json',
        'accept-encoding': 'identity',
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(call.body),
        'user-agent': 'decision-ledger',
        [call.keyHeader]: call.key,
        ...secrets,
      },
    });
  } catch {
    // Node's text for a value that no header can carry is not handed on: the value may be a secret.
    return notSent('unusable-header');
  }
  return exchange(request, call, guard, Object.values(secrets));
}

/** From the connection to the end of the answer, under one time limit for all of it. */
function exchange(
  request: ClientRequest,
  { url, body, timeoutMs }: Call,
  guard: CallGuard,
  secrets: readonly string[],
): Promise<CallOutcome> {
  return new Promise((resolve) => {
    let isOver = false;
    let isSent = false;
    let answer: AnswerReader | null = null;
    let status: number | null = null;

    const settle = (outcomeOf: () => CallOutcome): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      guard.signal.removeEventListener('abort', stopped);
      request.destroy();
      resolve(outcomeOf());
    };
    const breakOff = (failure: string, isHostDown = true): void =>
      settle(() =>
        // The status line said that it happened; that its answer is lost does not undo it.
        answer !== null && status !== null
          ? { kind: 'applied', status, result: answer.result(false) }
          : { kind: 'again', mayHaveHappened: isSent, status, failure, retryAfterMs: null, isHostDown },
      );
    const stopped = (): void => breakOff('stopped', false);
    const timer = setTimeout(() => breakOff('timeout'), timeoutMs);

    // Before anything can end the request: an error that nobody listens to would end the process.
    request.on('error', (error) => breakOff(failureOf(error), failureOf(error) !== ADDRESS_NOT_ALLOWED));
    if (guard.signal.aborted) return stopped();
    guard.signal.addEventListener('abort', stopped);
    request.on('socket', (socket) => {
      socket.once(url.startsWith('https:') ? 'secureConnect' : 'connect', () => {
        if (!guard.maySend()) return breakOff('lease-over', false);
        isSent = true;
        request.end(body);
      });
    });
    request.on('response', (response) => {
      const { statusCode = 0 } = response;
      status = statusCode;
      if (statusCode < 200 || statusCode > 299) return settle(() => unsuccessful(response, statusCode, guard.now()));
      const reader = new AnswerReader(response, secrets);
      answer = reader;
      const applied = (isWhole: boolean): void =>
        settle(() => ({ kind: 'applied', status: statusCode, result: reader.result(isWhole) }));
      response.on('data', (chunk: Buffer) => reader.take(chunk) || applied(false));
      response.on('end', () => applied(response.complete));
      response.on('error', () => applied(false));
    });
  });
}

function unsuccessful({ headers }: IncomingMessage, status: number, now: number): CallOutcome {
  if (status >= 400 && status < 500 && !AGAIN_STATUSES.has(status)) return { kind: 'refused', status };
  return {
    kind: 'again',
    mayHaveHappened: true,
    status,
    failure: null,
    retryAfterMs: retryAfterMs(headers['retry-after'], headers.date, now),
    isHostDown: DOWN_STATUSES.has(status),
  };
}

/** The code of a failure, never its text: that may speak of what was sent. */
function failureOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : 'broken';
}
