import type { Type } from '@nestjs/common';
import type { EffectHandler } from '#effects';
import { RefundCreateHandler } from './refund-create.handler.js';
import { SarFileHandler } from './sar-file.handler.js';

/** The actions that the demo tenant starts with, by the rules that an admin would put. */
export const EXAMPLE_ACTIONS = {
  'refund.create': {
    execution: 'transactional',
    uniqueness: 'none',
    sameContent: 'replay',
    paramsSchema: {
      type: 'object',
      properties: {
        amount: {
          anyOf: [
            { type: 'string', pattern: '^[0-9]+(\\.[0-9]+)?$' },
            { type: 'number', exclusiveMinimum: 0 },
          ],
        },
        currency: { type: 'string', pattern: '^[A-Z]{3}$' },
      },
    },
    responseRetentionDays: 90,
    leaseSeconds: 30,
  },
  'sar.file': {
    execution: 'transactional',
    uniqueness: 'subject-and-period',
    sameContent: 'replay',
    responseRetentionDays: 3650,
    leaseSeconds: 30,
  },
} as const;

export const EXAMPLE_HANDLERS: readonly Type<EffectHandler>[] = [RefundCreateHandler, SarFileHandler];
