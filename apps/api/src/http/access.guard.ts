import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { FastifyRequest } from 'fastify';
import { Authenticator, type Caller, type Role } from '#access';
import { Problem, validationFailed } from '#problem';
import { ALLOWED_ROLES, TAKES_QUERY } from './allow.js';

const BEARER = /^bearer +(\S+) *$/i;

/** Who is calling, and whether they may. Runs before the body is looked at, so a stranger learns nothing from it. */
@Injectable()
export class AccessGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly authenticator: Authenticator,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const route = context.getHandler();
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const roles = this.reflector.get<readonly Role[] | undefined>(ALLOWED_ROLES, route);
    if (roles !== undefined) request.caller = await this.callerOf(request, roles);
    if (this.reflector.get<true | undefined>(TAKES_QUERY, route) === undefined) refuseQuery(request);
    return true;
  }

  private async callerOf(request: FastifyRequest, roles: readonly Role[]): Promise<Caller> {
    const [, token] = BEARER.exec(request.headers.authorization ?? '') ?? [];
    const caller = token === undefined ? null : await this.authenticator.authenticate(token);
    if (caller === null) {
      throw new Problem('unauthenticated', 'Send a valid credential as "Authorization: Bearer dlk_…".', {
        headers: { 'www-authenticate': 'Bearer' },
      });
    }
    if (!roles.includes(caller.role)) {
      throw new Problem('forbidden', `This is for ${roles.join(', ')}; the credential is of the role ${caller.role}.`);
    }
    return caller;
  }
}

/** An unknown parameter is never ignored: whoever sent it meant something by it. */
function refuseQuery({ query }: FastifyRequest): void {
  const names = Object.keys(query ?? {});
  if (names.length > 0) {
    throw validationFailed(names.map((pointer) => ({ pointer, detail: 'is not a parameter of this route' })));
  }
}
