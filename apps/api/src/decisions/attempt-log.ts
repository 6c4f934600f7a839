import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { PinoLogger } from '../service/logger.js';
import type { Answer, Arrival } from '#ledger';
import { Metrics } from '../service/metrics.js';

const SHOWN_CHARACTERS = 12;
const SHOWN_HASH_DIGITS = 16;

/** Enough of a key to find it by, and never all of it: a key may open what it names somewhere else. */
export function shownKey(key: string): { key: string; keyHash: string } {
  return {
    key: key.slice(0, Math.min(SHOWN_CHARACTERS, Math.floor(key.length / 2))),
    keyHash: createHash('sha256').update(key).digest('hex').slice(0, SHOWN_HASH_DIGITS),
  };
}

/** One line and one count for each attempt. */
@Injectable()
export class AttemptLog {
  constructor(
    private readonly logger: PinoLogger,
    private readonly metrics: Metrics,
  ) {}

  note(
    arrival: Arrival,
    { key, action }: { key: string; action: string },
    { disposition, status, decisionId }: Answer,
  ): void {
    const latencyMs = performance.now() - arrival.startedAt;
    this.metrics.countDecision(action, disposition, latencyMs);
    this.logger.info({
      event: 'attempt',
      requestId: arrival.requestId,
      tenant: arrival.caller.tenant,
      action,
      ...shownKey(key),
      disposition,
      status,
      decisionId,
      latencyMs: Math.round(latencyMs * 1000) / 1000,
    });
  }
}
