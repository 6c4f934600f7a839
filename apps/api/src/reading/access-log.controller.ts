import { Controller, Get, Query, Req } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyRequest } from 'fastify';
import { AccessLog, type AccessView, type Page } from '#ledger';
import { callerOf, strictQuery } from '../http/index.js';
import { ListAccessesDoc } from './access-log.docs.js';
import { pagedOf } from './paging.js';
import { ListAccessesQuery } from './queries.js';

@ApiTags('Access log')
@Controller('v1/access-log')
export class AccessLogController {
  constructor(private readonly accesses: AccessLog) {}

  @Get()
  @ListAccessesDoc()
  async list(
    @Req() req: FastifyRequest,
    @Query(strictQuery(ListAccessesQuery)) query: ListAccessesQuery,
  ): Promise<Page<AccessView>> {
    return this.accesses.list(callerOf(req).tenant, ...pagedOf(query));
  }
}
