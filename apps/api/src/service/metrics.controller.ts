import { Controller, Get, Header } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Documented } from '../http/index.js';
import { Metrics } from './metrics.js';

const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8';

/** Beside the API unless METRICS_PORT gives the numbers a port of their own. */
@ApiTags('Service')
@Controller()
export class MetricsController {
  constructor(private readonly metrics: Metrics) {}

  @Get('metrics')
  @Header('content-type', PROMETHEUS_TEXT)
  @Documented({
    id: 'metrics',
    summary: 'What the service counts',
    description: 'Prometheus text: attempts by action and disposition, latencies, connections, requests under way.',
    answers: [
      {
        status: 200,
        description: 'The metrics.',
        example: 'decisions_total{action="refund.create",disposition="created"} 12\n',
        type: 'text/plain',
      },
    ],
  })
  read(): Promise<string> {
    return this.metrics.registry.metrics();
  }
}
