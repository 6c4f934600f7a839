import { Injectable } from '@nestjs/common';
import { shownKey } from '#key';
import type { Answer, Arrival } from '#ledger';
import { PinoLogger } from '../service/logger.js';
import { Metrics } from '../service/metrics.js';

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
