import { Module } from '@nestjs/common';
import { StoredResponses } from './stored-responses.js';

@Module({ providers: [StoredResponses], exports: [StoredResponses] })
export class IdempotencyModule {}
