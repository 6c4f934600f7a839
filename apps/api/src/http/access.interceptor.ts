import { Injectable, type CallHandler, type ExecutionContext, type NestInterceptor } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { catchError, concatMap, type Observable } from 'rxjs';
import { AccessLog, type Access } from '#ledger';
import { Problem } from '#problem';
import { callerOf } from './request-context.js';

/** Records who read what before the answer's first byte. What cannot be recorded is not answered. */
@Injectable()
export class AccessInterceptor implements NestInterceptor {
  constructor(private readonly accesses: AccessLog) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    return next.handle().pipe(
      concatMap(async (answer: unknown) => {
        await this.accesses.note(accessOf(request), rowsOf(answer));
        return answer;
      }),
      // To learn that something is not there is to have looked.
      catchError(async (error: unknown) => {
        if (error instanceof Problem && error.code === 'not-found') await this.accesses.note(accessOf(request), 0);
        throw error;
      }),
    );
  }
}

/** A request as the log of accesses knows it: what was asked for is the query and the parameters of the path. */
export function accessOf(request: FastifyRequest): Access {
  const { tenant, credentialId } = callerOf(request);
  return {
    tenant,
    credentialId,
    requestId: request.id,
    method: request.method,
    route: (request.routeOptions.url ?? '').replaceAll(/:(\w+)/g, '{$1}'),
    filters: { ...membersOf(request.query), ...membersOf(request.params) },
  };
}

function rowsOf(answer: unknown): number {
  if (typeof answer !== 'object' || answer === null) return 0;
  if ('items' in answer && Array.isArray(answer.items)) return answer.items.length;
  if ('groups' in answer && Array.isArray(answer.groups)) return Math.max(1, answer.groups.length);
  return 1;
}

const membersOf = (value: unknown): object => (typeof value === 'object' && value !== null ? value : {});
