import { Catch, HttpException, Logger, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { failureProblem } from '#database';
import { Problem } from '#problem';
import { unsupportedMediaType } from './json-body.js';
import type { Routes } from './routes.js';

/** Writes every failure as the problem that it is. Nothing else in the service writes one that is not stored. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  private readonly logger = new Logger(ProblemFilter.name);

  constructor(private readonly routes: Routes) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    const problem = this.problemOf(error, request);
    // A problem was logged where it was made, if it is to be logged at all.
    if (problem.code === 'internal' && !(error instanceof Problem)) this.logger.error(error);
    sendProblem(http.getResponse<FastifyReply>(), problem, request.id);
  }

  problemOf(error: unknown, request: FastifyRequest): Problem {
    if (error instanceof Problem) return error;
    switch (statusOf(error)) {
      case 400:
        return new Problem('malformed-request', 'The request is not well-formed HTTP for this service.', {
          members: { errors: [{ pointer: '', detail: 'cannot be read' }] },
        });
      // Of the page's files, one that may not be had is one that is not there.
      case 403:
      case 404:
        return this.notFound(request);
      case 413:
        return new Problem('too-large', 'The body is larger than this route takes.');
      case 415:
        return unsupportedMediaType();
      default:
        return failureProblem(error);
    }
  }

  private notFound(request: FastifyRequest): Problem {
    const methods = this.routes.methodsOf(request.url.split('?')[0] ?? '');
    if (methods.length === 0) return new Problem('not-found', 'There is no such route.');
    return new Problem('method-not-allowed', `Use ${methods.join(', ')}.`, { headers: { allow: methods.join(', ') } });
  }
}

export function sendProblem(reply: FastifyReply, problem: Problem, requestId: string): void {
  void reply
    .code(problem.status)
    .headers(problem.headers)
    .type('application/problem+json')
    .send(JSON.stringify(problem.body(requestId)));
}

/** The status that Nest or Fastify gave an error of their own. */
function statusOf(error: unknown): number | null {
  if (error instanceof HttpException) return error.getStatus();
  return error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number'
    ? error.statusCode
    : null;
}
