import { Controller, Get, Param, Query, Req } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyRequest } from 'fastify';
import { EntryReader, type EntryView, type Page } from '#ledger';
import { callerOf, idOf, strictQuery } from '../http/index.js';
import { GetEntryDoc, ListEntriesDoc } from './entries.docs.js';
import { pagedOf } from './paging.js';
import { ListDecisionsQuery } from './queries.js';

@ApiTags('Ledger entries')
@Controller('v1/ledger/entries')
export class EntriesController {
  constructor(private readonly reader: EntryReader) {}

  @Get()
  @ListEntriesDoc()
  async list(
    @Req() req: FastifyRequest,
    @Query(strictQuery(ListDecisionsQuery)) query: ListDecisionsQuery,
  ): Promise<Page<EntryView>> {
    return this.reader.list(callerOf(req).tenant, ...pagedOf(query));
  }

  @Get(':ledgerEntryId')
  @GetEntryDoc()
  async one(@Req() req: FastifyRequest, @Param('ledgerEntryId') ledgerEntryId: string): Promise<EntryView> {
    return this.reader.one(callerOf(req).tenant, idOf(ledgerEntryId, 'ledger entry'));
  }
}
