import {
  dispatchFlaws,
  EXECUTIONS,
  HEADER_NAME,
  HEADER_NAME_LENGTH,
  KEY_FORMS,
  ON_EXPIRED_LEASES,
  SAME_CONTENTS,
  UNIQUENESSES,
  type ActionRules,
  type DispatchRules,
  type Execution,
  type KeyForm,
  type OnExpiredLease,
  type SameContent,
  type Uniqueness,
} from '#actions';
import { validationFailed } from '#problem';
import { Child, JsonMap, Name, OneOf, Text, Whole } from '../fields/index.js';

const YEARS_10_DAYS = 3650;
const DAYS_30_SECONDS = 2_592_000;
const URL_LENGTH = 2048;

/** How the worker makes the call of a dispatched action. */
export class DispatchFields {
  @Text({
    description:
      'Where the call goes: http or https, without credentials and fragment, a host that the operator allows.',
    example: 'https://payments.example/v1/refunds',
    max: URL_LENGTH,
  })
  url: string;

  @OneOf({ description: 'The method.', default: 'POST', values: ['POST'], optional: true })
  method?: 'POST';

  @Name({
    description: 'The header that carries the key, the same on every try.',
    example: 'Idempotency-Key',
    pattern: HEADER_NAME,
    form: 'the name of a header',
    max: HEADER_NAME_LENGTH,
    optional: true,
  })
  keyHeader?: string;

  @OneOf({
    description: 'The form in which the downstream takes the key.',
    default: 'key',
    values: KEY_FORMS,
    optional: true,
  })
  keyForm?: KeyForm;

  @Whole({
    description: 'The most time that one call may take, from connecting to the end of the answer.',
    default: 10_000,
    min: 100,
    max: 60_000,
    optional: true,
  })
  timeoutMs?: number;

  @Whole({ description: 'The most tries in all.', default: 5, min: 1, max: 50, optional: true })
  maxAttempts?: number;

  @Whole({
    description: 'For how long after the first try the downstream remembers the key. Later there is no further try.',
    default: 86_400,
    min: 1,
    max: DAYS_30_SECONDS,
    optional: true,
  })
  idempotencyWindowSeconds?: number;

  @JsonMap({
    description:
      'Headers whose values are secrets, each as `env:NAME`: the variable in the environment of the service.',
    example: { Authorization: 'env:PAYMENTS_TOKEN' },
    optional: true,
  })
  secretHeaders?: Record<string, string>;
}

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

  @Child(() => DispatchFields, { description: 'For `dispatched`, and only there: the call.', optional: true })
  dispatch?: DispatchFields;
}

/**
 * The rules with the defaults filled in.
 *
 * @throws Problem `validation-failed` for what does not go with the execution, or makes no call
 */
export function rulesOf(request: PutActionRequest): ActionRules {
  const { execution, dispatch, onExpiredLease } = request;
  if (execution === 'transactional' && onExpiredLease !== undefined)
    throw validationFailed([{ pointer: '/onExpiredLease', detail: 'does not go with "transactional"' }]);
  if (execution !== 'dispatched' && dispatch !== undefined)
    throw validationFailed([{ pointer: '/dispatch', detail: `does not go with "${execution}"` }]);
  if (execution === 'dispatched' && dispatch === undefined)
    throw validationFailed([{ pointer: '/dispatch', detail: 'is required' }]);
  return {
    execution: request.execution,
    uniqueness: request.uniqueness ?? 'none',
    sameContent: request.sameContent ?? 'replay',
    ...(request.paramsSchema === undefined ? {} : { paramsSchema: request.paramsSchema }),
    responseRetentionDays: request.responseRetentionDays ?? 90,
    leaseSeconds: request.leaseSeconds ?? 30,
    ...(request.execution === 'transactional' ? {} : { onExpiredLease: request.onExpiredLease ?? 'reclaim' }),
    ...(dispatch === undefined ? {} : { dispatch: dispatchOf(dispatch) }),
  };
}

function dispatchOf(fields: DispatchFields): DispatchRules {
  const rules: DispatchRules = {
    url: fields.url,
    method: 'POST',
    keyHeader: fields.keyHeader ?? 'Idempotency-Key',
    keyForm: fields.keyForm ?? 'key',
    timeoutMs: fields.timeoutMs ?? 10_000,
    maxAttempts: fields.maxAttempts ?? 5,
    idempotencyWindowSeconds: fields.idempotencyWindowSeconds ?? 86_400,
    secretHeaders: { ...fields.secretHeaders },
  };
  const flaws = dispatchFlaws(rules);
  if (flaws.length > 0) throw validationFailed(flaws);
  return rules;
}
