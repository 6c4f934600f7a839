import type { FastifyReply } from 'fastify';
import type { Answer } from '#ledger';

const MS_A_SECOND = 1000;
const SUCCESS_BELOW = 300;

/** Sends the stored bytes, with the headers that belong to a recorded outcome. */
export function sendAnswer(reply: FastifyReply, answer: Answer): void {
  const isSuccess = answer.status < SUCCESS_BELOW;
  void reply.code(answer.status).type(isSuccess ? 'application/json' : 'application/problem+json');
  if (isSuccess) void reply.header('location', `/v1/decisions/${answer.decisionId}`);
  if (answer.replayed) void reply.header('idempotent-replayed', 'true');
  if (answer.expiresAtEpoch !== null)
    void reply.header('idempotency-expires', new Date(answer.expiresAtEpoch * MS_A_SECOND).toUTCString());
  // The end of a lease is told by the database's clock, so the time of its answer is, too: whatever this machine's says.
  if (answer.leaseTimeEpoch !== undefined)
    void reply.header('date', new Date(answer.leaseTimeEpoch * MS_A_SECOND).toUTCString());
  if (answer.retryAfterSeconds !== null) void reply.header('retry-after', String(answer.retryAfterSeconds));
  void reply.send(answer.body);
}
