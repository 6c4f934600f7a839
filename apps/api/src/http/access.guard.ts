import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { FastifyRequest } from 'fastify';
import { Authenticator, type Role } from '#access';
import { Problem } from '#problem';
import { ALLOWED_ROLES } from './allow.js';

const BEARER = /^bearer +(\S+) *$/i;

/** Who is calling, and whether they may. Runs before the body is looked at, so a stranger learns nothing from it. */
@Injectable()
export class AccessGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly authenticator: Authenticator,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const roles = this.reflector.get<readonly Role[] | undefined>(ALLOWED_ROLES, context.getHandler());
    if (roles === undefined) return true;
    const request = context.switchToHttp().getRequest<FastifyRequest>();
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
    request.caller = caller;
    return true;
  }
}
