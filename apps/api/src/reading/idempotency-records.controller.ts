import { Controller, Get, Param, Req } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyRequest } from 'fastify';
import { DecisionReader, type IdempotencyRecordView } from '#ledger';
import { Problem } from '#problem';
import { callerOf } from '../http/index.js';
import { GetRecordDoc } from './decisions.docs.js';

const KEY = /^[ -~]{1,255}$/;

@ApiTags('Idempotency records')
@Controller('v1/idempotency-records')
export class IdempotencyRecordsController {
  constructor(private readonly reader: DecisionReader) {}

  @Get(':key')
  @GetRecordDoc()
  async one(@Req() req: FastifyRequest, @Param('key') key: string): Promise<IdempotencyRecordView> {
    if (!KEY.test(key)) throw new Problem('not-found', 'There is no record of such a key.');
    return this.reader.idempotencyRecord(callerOf(req).tenant, key);
  }
}
