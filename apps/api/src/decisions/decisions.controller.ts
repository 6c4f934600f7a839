import { Body, Controller, Post, Req, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Ledger, type DecisionRequest } from '#ledger';
import { Problem, validationFailed } from '#problem';
import { bind } from '../fields/index.js';
import { arrivalOf, callerOf, strictBody } from '../http/index.js';
import { AttemptLog } from './attempt-log.js';
import { BatchItemRequest, RegisterBatchRequest, RegisterDecisionRequest } from './decisions.dto.js';
import { RegisterBatchDoc, RegisterDecisionDoc } from './decisions.docs.js';
import { keyOfHeader, keyOfItem, readDecision, patienceOf } from './read-request.js';
import { itemOf } from './batch-item.js';
import { sendAnswer } from './send-answer.js';

@ApiTags('Registering')
@Controller('v1/decisions')
export class DecisionsController {
  constructor(
    private readonly ledger: Ledger,
    private readonly attempts: AttemptLog,
  ) {}

  @Post()
  @RegisterDecisionDoc()
  async register(
    @Req() req: FastifyRequest,
    @Res() reply: FastifyReply,
    @Body(strictBody(RegisterDecisionRequest)) body: RegisterDecisionRequest,
  ): Promise<void> {
    const request = readDecision(callerOf(req), body, keyOfHeader(req.raw.rawHeaders));
    const answer = await this.ledger.record(arrivalOf(req), request, patienceOf(req.headers['prefer']));
    this.attempts.note(arrivalOf(req), logged(request), answer);
    sendAnswer(reply, answer);
  }

  @Post('batch')
  @RegisterBatchDoc()
  async registerBatch(
    @Req() req: FastifyRequest,
    @Res() reply: FastifyReply,
    @Body(strictBody(RegisterBatchRequest)) body: RegisterBatchRequest,
  ): Promise<void> {
    if (keyOfHeader(req.raw.rawHeaders) !== null) {
      throw new Problem(
        'invalid-idempotency-key',
        'A batch has a key for each item, in idempotencyKey, and none in the header.',
      );
    }
    const read = body.decisions.map((item) => readItem(req, item));
    const requests = read.filter((item): item is DecisionRequest => !(item instanceof Problem));
    const answers = await this.ledger.recordAll(arrivalOf(req), requests, patienceOf(req.headers['prefer']));
    const answerOf = new Map(requests.map((request, index) => [request, answers[index]]));
    for (const [request, answer] of answerOf)
      if (answer !== undefined && !(answer instanceof Problem))
        this.attempts.note(arrivalOf(req), logged(request), answer);
    const items = read.map((item) => itemOf(item instanceof Problem ? item : answerOf.get(item), req.id));
    void reply
      .code(200)
      .type('application/json')
      .send(`{"items":[${items.join(',')}]}`);
  }
}

/** An item that cannot be registered ends in its own problem, and its neighbours do not notice. */
function readItem(req: FastifyRequest, item: unknown): DecisionRequest | Problem {
  try {
    const { value, places } = bind(BatchItemRequest, item);
    return places === null
      ? readDecision(callerOf(req), value, keyOfItem(value.idempotencyKey))
      : validationFailed(places);
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
}

function logged({ key, inputs }: DecisionRequest): { key: string; action: string } {
  return { key, action: inputs.action };
}
