import { Controller, Get, Param, Query, Req } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyRequest } from 'fastify';
import { DecisionReader, type Counted, type DecisionListRow, type Page } from '#ledger';
import { callerOf, idOf, strictQuery } from '../http/index.js';
import { CountDecisionsDoc, GetDecisionDoc, ListDecisionsDoc } from './decisions.docs.js';
import { countedBy, pagedOf } from './paging.js';
import { CountDecisionsQuery, ListDecisionsQuery } from './queries.js';

@ApiTags('Decisions')
@Controller('v1/decisions')
export class DecisionReadingController {
  constructor(private readonly reader: DecisionReader) {}

  @Get()
  @ListDecisionsDoc()
  async list(
    @Req() req: FastifyRequest,
    @Query(strictQuery(ListDecisionsQuery)) query: ListDecisionsQuery,
  ): Promise<Page<DecisionListRow>> {
    return this.reader.list(callerOf(req).tenant, ...pagedOf(query));
  }

  @Get('count')
  @CountDecisionsDoc()
  async count(
    @Req() req: FastifyRequest,
    @Query(strictQuery(CountDecisionsQuery)) query: CountDecisionsQuery,
  ): Promise<Counted> {
    return this.reader.count(callerOf(req).tenant, ...countedBy(query));
  }

  @Get(':decisionId')
  @GetDecisionDoc()
  async one(@Req() req: FastifyRequest, @Param('decisionId') decisionId: string): Promise<Record<string, unknown>> {
    return this.reader.one(callerOf(req).tenant, idOf(decisionId, 'decision'));
  }
}
