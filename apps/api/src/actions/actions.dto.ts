import {
  EXECUTIONS,
  ON_EXPIRED_LEASES,
  SAME_CONTENTS,
  UNIQUENESSES,
  type ActionRules,
  type Execution,
  type OnExpiredLease,
  type SameContent,
  type Uniqueness,
} from '#actions';
import { JsonMap, OneOf, Whole } from '../fields/index.js';

const YEARS_10_DAYS = 3650;

export class PutActionRequest {
  @OneOf({
    description:
      'Who carries out the effect: this service in the transaction that records the decision, the caller, or the worker.',
    example: 'transactional',
    values: EXECUTIONS,
  })
  execution: Execution;

  @OneOf({
    description:
      'How often it may be applied: any number of times, once a subject, or once a subject and reporting period.',
    example: 'subject-and-period',
    default: 'none',
    values: UNIQUENESSES,
    optional: true,
  })
  uniqueness?: Uniqueness;

  @OneOf({
    description: 'What another key with the same content gets.',
    default: 'replay',
    values: SAME_CONTENTS,
    optional: true,
  })
  sameContent?: SameContent;

  @JsonMap({
    description: 'JSON Schema 2020-12 that inputs.params must satisfy.',
    example: { type: 'object', required: ['amount'] },
    optional: true,
  })
  paramsSchema?: Record<string, unknown>;

  @Whole({
    description: 'How many days the stored response is kept. The ledger entry stays for good.',
    default: 90,
    min: 1,
    max: YEARS_10_DAYS,
    optional: true,
  })
  responseRetentionDays?: number;

  @Whole({
    description: 'How long a caller or worker may hold the key before it is taken back.',
    default: 30,
    min: 1,
    max: 3600,
    optional: true,
  })
  leaseSeconds?: number;

  @OneOf({
    description:
      'For an effect outside: whether a lease that ran out may be taken back and run again, or leaves the outcome unknown.',
    default: 'reclaim',
    values: ON_EXPIRED_LEASES,
    optional: true,
  })
  onExpiredLease?: OnExpiredLease;
}

/** The rules with the defaults filled in. */
export function rulesOf(request: PutActionRequest): ActionRules {
  return {
    execution: request.execution,
    uniqueness: request.uniqueness ?? 'none',
    sameContent: request.sameContent ?? 'replay',
    ...(request.paramsSchema === undefined ? {} : { paramsSchema: request.paramsSchema }),
    responseRetentionDays: request.responseRetentionDays ?? 90,
    leaseSeconds: request.leaseSeconds ?? 30,
    ...(request.execution === 'transactional' ? {} : { onExpiredLease: request.onExpiredLease ?? 'reclaim' }),
  };
}
