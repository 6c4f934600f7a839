import type { LoggerService } from '@nestjs/common';
import { pino, type Logger } from 'pino';
import type { Settings } from '#database';

/**
 * What is logged of an error. A failed statement carries its parameters, and with them keys, inputs and notes, and the
 * server's DETAIL quotes rows: none of that belongs into a log.
 */
function shownError(error: Error): Record<string, unknown> {
  return {
    type: error.constructor.name,
    message: error.message,
    stack: error.stack,
    ...('code' in error ? { code: error.code } : {}),
  };
}

/** Structured lines on standard output, for Nest's own messages and for ours. */
export class PinoLogger implements LoggerService {
  private readonly pino: Logger;

  constructor(level: Settings['logLevel']) {
    this.pino = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime, serializers: { err: shownError } });
  }

  /** A line of members. */
  info(members: Readonly<Record<string, unknown>>): void {
    this.pino.info(members);
  }

  log(message: unknown): void {
    this.pino.debug(String(message));
  }

  error(message: unknown): void {
    if (message instanceof Error) this.pino.error({ err: message }, message.message);
    else this.pino.error(String(message));
  }

  warn(message: unknown): void {
    this.pino.warn(String(message));
  }

  debug(message: unknown): void {
    this.pino.debug(String(message));
  }
}
