import { Controller, Get, Query, Req } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyRequest } from 'fastify';
import { AttemptReader, type AttemptView, type Counted, type Page } from '#ledger';
import { callerOf, strictQuery } from '../http/index.js';
import { CountAttemptsDoc, ListAttemptsDoc } from './attempts.docs.js';
import { countedBy, pagedOf } from './paging.js';
import { CountAttemptsQuery, ListAttemptsQuery } from './queries.js';

@ApiTags('Attempts')
@Controller('v1/attempts')
export class AttemptsController {
  constructor(private readonly reader: AttemptReader) {}

  @Get()
  @ListAttemptsDoc()
  async list(
    @Req() req: FastifyRequest,
    @Query(strictQuery(ListAttemptsQuery)) query: ListAttemptsQuery,
  ): Promise<Page<AttemptView>> {
    return this.reader.list(callerOf(req).tenant, ...pagedOf(query));
  }

  @Get('count')
  @CountAttemptsDoc()
  async count(
    @Req() req: FastifyRequest,
    @Query(strictQuery(CountAttemptsQuery)) query: CountAttemptsQuery,
  ): Promise<Counted> {
    return this.reader.count(callerOf(req).tenant, ...countedBy(query));
  }
}
