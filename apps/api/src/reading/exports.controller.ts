import { Readable } from 'node:stream';
import { Controller, Get, Logger, Query, Req, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AccessLog, DecisionExport, type ExportRow } from '#ledger';
import { accessOf, callerOf, strictQuery } from '../http/index.js';
import { exportText, FORMATS } from './export-text.js';
import { ExportDecisionsDoc } from './exports.docs.js';
import { pagedOf } from './paging.js';
import { ExportDecisionsQuery } from './queries.js';

@ApiTags('Exports')
@Controller('v1/exports')
export class ExportsController {
  private readonly logger = new Logger(ExportsController.name);

  constructor(
    private readonly exports: DecisionExport,
    private readonly accesses: AccessLog,
  ) {}

  @Get('decisions')
  @ExportDecisionsDoc()
  async decisions(
    @Req() req: FastifyRequest,
    @Res() reply: FastifyReply,
    @Query(strictQuery(ExportDecisionsQuery)) { format = 'ndjson', ...query }: ExportDecisionsQuery,
  ): Promise<void> {
    const { tenant } = callerOf(req);
    const rows = this.exports.rows(tenant, ...pagedOf(query));
    // A question that cannot be answered ends in a problem, and not in the middle of a file.
    const first = await rows.next();
    const accessId = await this.accesses.begin(accessOf(req));
    let sent = 0;
    let finished = false;
    const counted = async function* (): AsyncGenerator<ExportRow> {
      if (first.done === true) return;
      yield first.value;
      sent += 1;
      for await (const row of rows) {
        yield row;
        sent += 1;
      }
    };
    const text = async function* (this: ExportsController): AsyncGenerator<string> {
      try {
        yield* exportText(format, counted());
        finished = true;
      } catch (error) {
        // The reader sees that the file has no trailer.
        this.logger.error(error);
        throw error;
      } finally {
        await this.accesses.end(tenant, accessId, sent, finished);
      }
    };
    const { type, extension } = FORMATS[format];
    void reply
      .code(200)
      .header('content-type', type)
      .header('content-disposition', `attachment; filename="decisions.${extension}"`)
      .send(Readable.from(text.call(this), { objectMode: false, highWaterMark: 256 * 1024 }));
  }
}
