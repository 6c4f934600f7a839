import { Problem } from '#problem';

/** What became of an arrival. */
export type Disposition =
  | 'created'
  | 'refused'
  | 'replayed'
  | 'mismatch'
  | 'in_flight'
  | 'same_content'
  | 'reclaimed'
  | 'completed'
  | 'failed'
  | 'unknown'
  | 'lease_lost'
  | 'renewed'
  | 'resolved';

/** What a request is told: a recorded outcome with its stored bytes, or a problem about the key. */
export interface Answer {
  readonly disposition: Disposition;
  readonly decisionId: string | null;
  readonly status: number;
  /** The bytes to send. */
  readonly body: string;
  /** Whether these bytes have been given before. */
  readonly replayed: boolean;
  /** For a recorded outcome: until when the stored response is kept, in seconds since 1970. */
  readonly expiresAtEpoch: number | null;
  readonly retryAfterSeconds: number | null;
  /** Of a lease: the time where it is judged, in seconds since 1970. Without it, nobody could tell how long it lasts. */
  readonly leaseTimeEpoch?: number;
}

/** A row of the database's `decision_answer`. */
export interface AnswerRow {
  ordinal: number;
  disposition: Disposition;
  decision_id: string;
  state: string;
  response_status: number | null;
  response_body: string | null;
  expires_at_epoch: number | null;
  winner_key: string | null;
  winner_recorded_at: string | null;
  problem: string | null;
  lease_number: number | null;
  locked_until: string | null;
  retry_after_seconds: number | null;
  /** Where {@link LEASE_TIME} was asked for. */
  lease_time_epoch?: number;
}

/** Asked for beside an answer that may be a lease: the time on the clock that the lease ends by. */
export const LEASE_TIME = 'extract(epoch FROM clock_timestamp())::double precision AS lease_time_epoch';

/** How {@link LEASE_TIME} is handed on. */
export function leaseTime({ lease_time_epoch: epoch }: AnswerRow): Pick<Answer, 'leaseTimeEpoch'> {
  return epoch === undefined ? {} : { leaseTimeEpoch: epoch };
}

/** An answer that is about the key, not an outcome. */
function keyProblem(disposition: Disposition, decisionId: string | null, problem: Problem, requestId: string): Answer {
  return {
    disposition,
    decisionId,
    status: problem.status,
    body: JSON.stringify(problem.body(requestId)),
    replayed: false,
    expiresAtEpoch: null,
    retryAfterSeconds: null,
  };
}

/** The key is known, for another request. Says which decision stands, never what it answered or where they differ. */
export function mismatchAnswer(row: AnswerRow, requestId: string): Answer {
  const problem = new Problem(
    'fingerprint-mismatch',
    `This key stands for another request. Decision ${row.decision_id} was made under it.`,
    {
      members: { decisionId: row.decision_id, state: row.state },
    },
  );
  return keyProblem('mismatch', row.decision_id, problem, requestId);
}

/** Another key carries the same content, and the action wants that refused. */
export function sameContentAnswer(row: AnswerRow, requestId: string): Answer {
  const winner = { decisionId: row.decision_id, key: row.winner_key, recordedAt: row.winner_recorded_at };
  const problem = new Problem(
    'same-content',
    'The same decision was made under another key, the winner; this key stays unused.',
    { members: { winner } },
  );
  return keyProblem('same_content', row.decision_id, problem, requestId);
}

/**
 * Somebody else holds what the request needs and has not finished.
 *
 * @param holder the decision that is waited for; null for a transaction that nobody can see before it commits
 * @param state how it stands: what is unknown holds what it holds too, and until somebody has resolved it
 * @param retryAfterSeconds when the holder's lease ends at the latest
 */
export function inFlightAnswer(
  holder: string | null,
  state: string,
  retryAfterSeconds: number | null,
  requestId: string,
): Answer {
  const problem = new Problem(
    'in-flight',
    'A request that this one must wait for is under way. Send the same request again.',
    {
      members: { ...(holder === null ? {} : { decisionId: holder }), state: state === 'unknown' ? state : 'in_flight' },
    },
  );
  const answer = keyProblem('in_flight', holder, problem, requestId);
  return { ...answer, retryAfterSeconds: retryAfterSeconds ?? 1 };
}

/** The effect may have happened; nobody runs it again by machine. */
export function unknownAnswer(row: AnswerRow, requestId: string): Answer {
  const problem = new Problem(
    'outcome-unknown',
    'Nobody knows whether the effect happened. It is not run again until an admin has resolved the decision.',
    { members: { decisionId: row.decision_id, state: row.state } },
  );
  return keyProblem('unknown', row.decision_id, problem, requestId);
}

/** The report came from somebody who does not hold the lease, or no longer. */
export function leaseLostAnswer(row: AnswerRow, requestId: string): Answer {
  const problem = new Problem(
    'lease-lost',
    'The lease is held by another, or has ended. Do not run the effect; look at the decision.',
    { members: { decisionId: row.decision_id, state: row.state } },
  );
  return keyProblem('lease_lost', row.decision_id, problem, requestId);
}

/** A resolution of what is not unknown. */
export function notUnknownAnswer(row: AnswerRow, requestId: string): Answer {
  const problem = new Problem('not-unknown', 'The decision is not unknown, so there is nothing to resolve.', {
    members: { decisionId: row.decision_id, state: row.state },
  });
  return keyProblem('resolved', row.decision_id, problem, requestId);
}

/** A recorded outcome: the stored status and bytes. */
export function outcomeAnswer(row: AnswerRow, body: string): Answer {
  return {
    disposition: row.disposition,
    decisionId: row.decision_id,
    status: row.response_status ?? 500,
    body,
    replayed: row.disposition === 'replayed' || row.disposition === 'same_content',
    expiresAtEpoch: row.expires_at_epoch,
    retryAfterSeconds: null,
  };
}
