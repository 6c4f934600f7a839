import { Controller, Get, Param, Query, Req, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { formatReceipt, LogReader, parseTilePath } from '#log';
import { validationFailed } from '#problem';
import { patienceOf } from '../decisions/read-request.js';
import { callerOf, strictQuery } from '../http/index.js';
import { GetCheckpointDoc, GetKeysDoc, GetTileDoc, ProveConsistencyDoc, ProveInclusionDoc } from './log.docs.js';
import { prefersText } from './prefers-text.js';
import { ConsistencyQuery, InclusionQuery } from './queries.js';

const TEXT = 'text/plain; charset=utf-8';
const CACHED_FOR_GOOD = 'private, max-age=31536000, immutable';

const hex = (hash: Uint8Array): string => Buffer.from(hash).toString('hex');

@ApiTags('Log')
@Controller('v1/log')
export class LogController {
  constructor(private readonly log: LogReader) {}

  @Get('checkpoint')
  @GetCheckpointDoc()
  async checkpoint(@Req() req: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const checkpoint = await this.log.checkpoint(callerOf(req).tenant);
    void reply.type(TEXT).header('cache-control', 'no-cache').send(checkpoint);
  }

  @Get('tile/*')
  @GetTileDoc()
  async tile(
    @Req() req: FastifyRequest,
    @Res() reply: FastifyReply,
    @Param() params: Readonly<Record<string, string>>,
  ): Promise<void> {
    const tile = parseTilePath(`tile/${params['*']}`);
    if (tile === null) throw validationFailed([{ pointer: 'path', detail: 'is not the path of a tile' }]);
    const bytes = await this.log.tile(callerOf(req).tenant, tile);
    void reply.type('application/octet-stream').header('cache-control', CACHED_FOR_GOOD).send(bytes);
  }

  @Get('proofs/inclusion')
  @ProveInclusionDoc()
  async inclusion(
    @Req() req: FastifyRequest,
    @Res() reply: FastifyReply,
    @Query(strictQuery(InclusionQuery)) { ledgerEntryId }: InclusionQuery,
  ): Promise<void> {
    const { outcomeMs } = patienceOf(req.headers['prefer']);
    const proof = await this.log.inclusion(callerOf(req).tenant, ledgerEntryId, outcomeMs);
    const { leafIndex, treeSize, leafHash, hashes, checkpoint } = proof;
    void reply.header('vary', 'accept');
    if (prefersText(req.headers.accept)) {
      void reply.type(TEXT).send(formatReceipt({ index: leafIndex, hashes, checkpoint }));
    } else {
      void reply.send({ leafIndex, treeSize, leafHash: hex(leafHash), hashes: hashes.map(hex), checkpoint });
    }
  }

  @Get('proofs/consistency')
  @ProveConsistencyDoc()
  async consistency(
    @Req() req: FastifyRequest,
    @Query(strictQuery(ConsistencyQuery)) query: ConsistencyQuery,
  ): Promise<{ first: number; second: number; hashes: string[] }> {
    const [first, second] = [Number(query.first), Number(query.second)];
    const hashes = await this.log.consistency(callerOf(req).tenant, first, second);
    return { first, second, hashes: hashes.map(hex) };
  }

  @Get('key')
  @GetKeysDoc()
  async keys(@Req() req: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const keys = await this.log.keys(callerOf(req).tenant);
    void reply.type(TEXT).send(keys.map((key) => `${key}\n`).join(''));
  }
}
