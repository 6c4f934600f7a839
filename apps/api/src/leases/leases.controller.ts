import { Body, Controller, Param, Post, Req, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Leases, type ReportAnswer } from '#ledger';
import { AttemptLog } from '../decisions/attempt-log.js';
import { sendAnswer } from '../decisions/send-answer.js';
import { arrivalOf, idOf, strictBody } from '../http/index.js';
import { CompleteDoc, FailDoc, RenewDoc, ResolveDoc } from './leases.docs.js';
import {
  CompletionRequest,
  FailureRequest,
  LeaseRequest,
  outcomeOf,
  resolutionOf,
  ResolutionRequest,
} from './leases.dto.js';

/** What the holder of a lease, or an admin, reports on an effect outside. */
@ApiTags('Leases')
@Controller('v1/decisions/:decisionId')
export class LeasesController {
  constructor(
    private readonly leases: Leases,
    private readonly attempts: AttemptLog,
  ) {}

  @Post('lease')
  @RenewDoc()
  async renew(
    @Req() req: FastifyRequest,
    @Res() reply: FastifyReply,
    @Param('decisionId') id: string,
    @Body(strictBody(LeaseRequest)) { leaseToken }: LeaseRequest,
  ): Promise<void> {
    this.send(req, reply, await this.leases.renew(arrivalOf(req), idOf(id, 'decision'), leaseToken));
  }

  @Post('completion')
  @CompleteDoc()
  async complete(
    @Req() req: FastifyRequest,
    @Res() reply: FastifyReply,
    @Param('decisionId') id: string,
    @Body(strictBody(CompletionRequest)) { leaseToken, outcome }: CompletionRequest,
  ): Promise<void> {
    this.send(
      req,
      reply,
      await this.leases.complete(arrivalOf(req), idOf(id, 'decision'), leaseToken, outcomeOf(outcome)),
    );
  }

  @Post('failure')
  @FailDoc()
  async fail(
    @Req() req: FastifyRequest,
    @Res() reply: FastifyReply,
    @Param('decisionId') id: string,
    @Body(strictBody(FailureRequest)) { leaseToken, reason, effect }: FailureRequest,
  ): Promise<void> {
    this.send(req, reply, await this.leases.fail(arrivalOf(req), idOf(id, 'decision'), leaseToken, { reason, effect }));
  }

  @Post('resolution')
  @ResolveDoc()
  async resolve(
    @Req() req: FastifyRequest,
    @Res() reply: FastifyReply,
    @Param('decisionId') id: string,
    @Body(strictBody(ResolutionRequest)) body: ResolutionRequest,
  ): Promise<void> {
    const resolution = resolutionOf(body);
    const decisionId = idOf(id, 'decision');
    const report =
      'outcome' in resolution
        ? await this.leases.resolve(arrivalOf(req), decisionId, resolution.outcome)
        : await this.leases.release(arrivalOf(req), decisionId, resolution.reason);
    this.send(req, reply, report);
  }

  private send(req: FastifyRequest, reply: FastifyReply, { answer, key, action }: ReportAnswer): void {
    this.attempts.note(arrivalOf(req), { key, action }, answer);
    sendAnswer(reply, answer);
  }
}
