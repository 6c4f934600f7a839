import type { Client, Reply } from './client.js';
import type { TestDatabase } from './database.js';

/** A claim that a test holds: its decision, its token, and the calls that go with it. */
export interface Claim {
  readonly reply: Reply;
  readonly decisionId: string;
  readonly token: string;
  renew(): Promise<Reply>;
  complete(outcome: Readonly<Record<string, unknown>>): Promise<Reply>;
  fail(effect: 'none' | 'unknown', reason?: string): Promise<Reply>;
}

/** Claims a decision whose effect is outside; the answer must be `202`. */
export async function claim(client: Client, body: unknown, key?: string): Promise<Claim> {
  const reply = await client.decide(body, key);
  if (reply.status !== 202) throw new Error(`Not claimed: ${reply.status} ${reply.text}`);
  const { decisionId, lease } = reply.body;
  const path = `/v1/decisions/${decisionId}`;
  return {
    reply,
    decisionId,
    token: lease.token,
    renew: () => client.post(`${path}/lease`, { leaseToken: lease.token }),
    complete: (outcome) => client.post(`${path}/completion`, { leaseToken: lease.token, outcome }),
    fail: (effect, reason = 'connection refused') =>
      client.post(`${path}/failure`, { leaseToken: lease.token, reason, effect }),
  };
}

/** A twin that does not wait. */
export function atOnce(client: Client, body: unknown, key?: string): Promise<Reply> {
  return client.post('/v1/decisions', body, {
    prefer: 'wait=0',
    ...(key === undefined ? {} : { 'idempotency-key': key }),
  });
}

/** Puts the end of a lease into the past, as if its time had gone by. */
export async function letExpire(database: TestDatabase, decisionId: string): Promise<void> {
  await database.query(
    `UPDATE idempotency_record SET locked_until = clock_timestamp() - interval '1 second' WHERE decision_id = $1`,
    [decisionId],
  );
}
