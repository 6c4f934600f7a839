export { BoundKey } from './bound-key.entity.js';
export { EndedLease } from './ended-lease.entity.js';
export { IdempotencyModule } from './idempotency.module.js';
export { IdempotencyRecord } from './idempotency-record.entity.js';
export { StoredResponses } from './stored-responses.js';
