import { Inject, Injectable } from '@nestjs/common';
import { Database } from '#database';
import { canonicalJson, sha256, type JsonValue } from '#key';
import { Problem } from '#problem';
import { newId } from './new-id.js';
import {
  LEASE_TIME,
  leaseLostAnswer,
  leaseTime,
  mismatchAnswer,
  notUnknownAnswer,
  outcomeAnswer,
  type Answer,
  type AnswerRow,
} from './answer.js';
import type { Arrival } from './decision-request.js';
import { readDecisionBasis, type DecisionBasis } from './decision-basis.js';
import { LEDGER_SETTINGS, type LedgerSettings } from './ledger-settings.js';
import { readLeaseToken, type LeaseToken } from './lease.js';
import { patiently } from './patience.js';
import { appliedHead, refusalHead } from './response.js';
import { appliedBodyFromEntry } from './stored-outcome.js';

/** What became of an effect outside, as its holder or an admin reports it. */
export type ReportedOutcome =
  | { readonly status: 'applied'; readonly result: JsonValue; readonly externalRef?: string }
  | { readonly status: 'refused'; readonly reason: string; readonly detail?: string };

/** A report of a lease: an outcome's stored bytes, or a short body about the lease. */
export interface ReportAnswer {
  readonly answer: Answer;
  /** The key and the action of the decision, for the log. */
  readonly key: string;
  readonly action: string;
}

/** How long a report waits for a row that another transaction holds. Such a transaction is short. */
const REPORT_WAIT_MS = 2_000;

/** The token of somebody who cannot be the holder: it agrees with no lease, and the attempt is recorded all the same. */
const NO_TOKEN: LeaseToken = { number: 0, secretSha256: sha256('') };

/** The life of an effect outside between its claim and its end. */
@Injectable()
export class Leases {
  constructor(
    private readonly database: Database,
    @Inject(LEDGER_SETTINGS) private readonly settings: LedgerSettings,
  ) {}

  /** Prolongs a lease. @throws Problem `not-found` */
  async renew(arrival: Arrival, decisionId: string, token: string): Promise<ReportAnswer> {
    const { number, secretSha256 } = readLeaseToken(token) ?? NO_TOKEN;
    return this.report(arrival, decisionId, (_basis, row) => ({
      sql: `SELECT *, ${LEASE_TIME} FROM renew_lease($1, $2, $3, $4, $5)`,
      parameters: [row, number, secretSha256],
      body: ({ locked_until }) => ({ lockedUntil: locked_until }),
    }));
  }

  /** Ends a lease with an outcome. @throws Problem `not-found` */
  async complete(arrival: Arrival, decisionId: string, token: string, outcome: ReportedOutcome): Promise<ReportAnswer> {
    return this.conclude(arrival, decisionId, readLeaseToken(token) ?? NO_TOKEN, outcome);
  }

  /** Ends what is unknown with an outcome. @throws Problem `not-found` */
  async resolve(arrival: Arrival, decisionId: string, outcome: ReportedOutcome): Promise<ReportAnswer> {
    return this.conclude(arrival, decisionId, null, outcome);
  }

  /** Ends a lease without an outcome: nothing happened, or nobody knows. @throws Problem `not-found` */
  async fail(
    arrival: Arrival,
    decisionId: string,
    token: string,
    { reason, effect }: { reason: string; effect: 'none' | 'unknown' },
  ): Promise<ReportAnswer> {
    return this.giveUp(arrival, decisionId, readLeaseToken(token) ?? NO_TOKEN, effect === 'unknown', {
      reason,
      effect,
    });
  }

  /** Frees what is unknown, because nothing happened after all. @throws Problem `not-found` */
  async release(arrival: Arrival, decisionId: string, reason: string): Promise<ReportAnswer> {
    return this.giveUp(arrival, decisionId, null, false, { release: true, reason });
  }

  private async conclude(
    arrival: Arrival,
    decisionId: string,
    token: LeaseToken | null,
    outcome: ReportedOutcome,
  ): Promise<ReportAnswer> {
    const conclusion = sha256(canonicalJson(plainOutcome(outcome)));
    return this.report(arrival, decisionId, (basis, row) => ({
      sql: 'SELECT * FROM complete_lease($1, $2, $3, $4, $5, $6, $7)',
      parameters: [
        { ...row, ...outcomeMembers(basis, row, outcome, arrival.requestId) },
        outcome.status === 'applied',
        token?.number ?? null,
        token?.secretSha256 ?? null,
        conclusion,
      ],
      body: null,
    }));
  }

  private async giveUp(
    arrival: Arrival,
    decisionId: string,
    token: LeaseToken | null,
    isUnknown: boolean,
    conclusion: JsonValue,
  ): Promise<ReportAnswer> {
    return this.report(arrival, decisionId, (_basis, row) => ({
      sql: 'SELECT * FROM fail_lease($1, $2, $3, $4, $5, $6, $7)',
      parameters: [
        row,
        isUnknown,
        token?.number ?? null,
        token?.secretSha256 ?? null,
        sha256(canonicalJson(conclusion)),
      ],
      body: ({ decision_id, state }) => ({ decisionId: decision_id, state }),
    }));
  }

  /** Sends one report about a decision: the row that all of them share, the statement, and the body where it is not stored. */
  private async report(
    arrival: Arrival,
    decisionId: string,
    make: (basis: DecisionBasis, row: ReportRow) => Report,
  ): Promise<ReportAnswer> {
    const { tenant } = arrival.caller;
    const basis = await readDecisionBasis(this.database, tenant, decisionId);
    const { sql, parameters, body } = make(basis, this.reportRow(arrival, basis));
    const [row, ...rest] = parameters;
    const [answer] = await patiently(performance.now() + REPORT_WAIT_MS, ({ lockTimeoutMs }) =>
      this.database.statement<AnswerRow>(sql, [tenant, lockTimeoutMs, JSON.stringify([row]), ...rest]),
    );
    if (answer === undefined) throw new Problem('internal', 'The report was not answered.');
    // An applied outcome without its bytes was pruned: it is written out again from the ledger.
    const isPruned = body === null && answer.problem === null && answer.response_body === null;
    const bytes = isPruned
      ? await appliedBodyFromEntry(this.database, tenant, decisionId)
      : (answer.response_body ?? '');
    return { answer: answerOf(answer, body ?? bytes, arrival.requestId), key: basis.key, action: basis.action };
  }

  /** The decision's row as the database takes it, with the attempt that reports on it. */
  private reportRow(arrival: Arrival, { row }: DecisionBasis): ReportRow {
    return {
      ...row,
      ordinal: 0,
      effect_id: newId(),
      ledger_entry_id: newId(),
      attempt_id: newId(),
      credential_id: arrival.caller.credentialId,
      request_id: arrival.requestId,
      elapsed_ms: performance.now() - arrival.startedAt,
      retention_seconds: this.settings.responseRetentionOverrideSeconds ?? row['retention_seconds'],
    };
  }
}

interface Report {
  readonly sql: string;
  readonly parameters: readonly [ReportRow, ...unknown[]];
  /** What is answered where there is no stored response. */
  readonly body: ((row: AnswerRow) => Record<string, unknown>) | null;
}

type ReportRow = Record<string, unknown> & { decision_id: string; effect_id: string; ledger_entry_id: string };

function outcomeMembers(
  basis: DecisionBasis,
  row: ReportRow,
  outcome: ReportedOutcome,
  requestId: string,
): Record<string, unknown> {
  const { decision_id: decisionId, effect_id: effectId, ledger_entry_id: ledgerEntryId } = row;
  const { key, keySource, contentKey, action } = basis;
  if (outcome.status === 'refused') {
    const { reason, detail = 'The effect was refused where it was to happen.' } = outcome;
    return {
      refusal_reason: reason,
      refused_head: refusalHead({ decisionId, key, ledgerEntryId }, reason, detail, requestId),
    };
  }
  const result = canonicalJson(outcome.result);
  const externalRef = outcome.externalRef ?? null;
  const parts = { decisionId, effectId, ledgerEntryId, key, keySource, contentKey, action, result, externalRef };
  return { result, external_ref: externalRef, applied_head: appliedHead(parts) };
}

/** The outcome as plain JSON, for its hash: the same report sent again is the same outcome. */
function plainOutcome(outcome: ReportedOutcome): JsonValue {
  const plain: JsonValue = JSON.parse(JSON.stringify(outcome));
  return plain;
}

/** @param body how it is made of the row, or the bytes of an outcome */
function answerOf(row: AnswerRow, body: NonNullable<Report['body']> | string, requestId: string): Answer {
  if (row.problem === 'lease-lost') return leaseLostAnswer(row, requestId);
  if (row.problem === 'not-unknown') return notUnknownAnswer(row, requestId);
  if (row.disposition === 'mismatch') return mismatchAnswer(row, requestId);
  if (typeof body === 'string') {
    const answer = outcomeAnswer(row, body);
    return { ...answer, status: answer.status === 201 ? 200 : answer.status };
  }
  return {
    disposition: row.disposition,
    decisionId: row.decision_id,
    status: 200,
    body: JSON.stringify(body(row)),
    replayed: row.disposition === 'replayed',
    expiresAtEpoch: null,
    retryAfterSeconds: null,
    ...leaseTime(row),
  };
}
