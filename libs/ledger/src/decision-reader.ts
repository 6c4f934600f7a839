import { Injectable } from '@nestjs/common';
import { Database, type Transaction } from '#database';
import { downstreamDigest, downstreamKeys, sha256, type JsonValue } from '#key';
import { Problem, validationFailed } from '#problem';
import { readCursor, writeCursor } from './cursor.js';
import { STATE, whereOf, type DecisionFilters } from './decision-filter.js';

/** A decision as it stands in a list. Times are RFC 3339 with microseconds. */
export interface DecisionListRow {
  decisionId: string;
  key: string;
  keySource: string;
  contentKey: string;
  state: string;
  outcome: { status: string; reason?: string } | null;
  action: string;
  actionVersion: number;
  subject: { type: string; id: string };
  reportingPeriod: string | null;
  model: { id: string; version: string };
  promptTemplateSha256: string;
  retrievalSnapshotId: string;
  policyVersion: string;
  effectId: string | null;
  externalRef: string | null;
  ledgerEntryId: string | null;
  receivedAt: string;
  recordedAt: string | null;
}

export interface ListQuestion {
  readonly filters: DecisionFilters;
  readonly order: 'asc' | 'desc';
  readonly limit: number;
  readonly cursor: string | null;
}

export interface IdempotencyRecordView {
  key: string;
  keySource: string;
  status: string;
  fingerprint: string;
  decisionId: string;
  lockedUntil: string | null;
  createdAt: string;
  expiresAt: string | null;
}

/** The list row, made in the database: no time passes through a JavaScript Date. */
const LIST_ROW = `json_build_object(
  'decisionId', d.decision_id, 'key', d.idem_key, 'keySource', d.key_source, 'contentKey', content_key(d.tenant_id, d.content_hash),
  'state', ${STATE}, 'outcome', CASE WHEN l.outcome IS NOT NULL THEN json_strip_nulls(json_build_object('status', l.outcome, 'reason', l.reason)) END,
  'action', d.action, 'actionVersion', d.action_version, 'subject', json_build_object('type', d.subject_type, 'id', d.subject_id),
  'reportingPeriod', d.reporting_period, 'model', json_build_object('id', d.model_id, 'version', d.model_version),
  'promptTemplateSha256', encode(d.prompt_template_sha256, 'hex'), 'retrievalSnapshotId', d.retrieval_snapshot_id,
  'policyVersion', d.policy_version, 'effectId', l.effect_id, 'externalRef', l.external_ref, 'ledgerEntryId', l.ledger_entry_id,
  'receivedAt', rfc3339(d.received_at), 'recordedAt', rfc3339(l.recorded_at))`;

/** A decision with its entry and, while it has none, the record of its key. */
const FROM = `FROM decision_record d
    LEFT JOIN ledger_entry l ON l.tenant_id = d.tenant_id AND l.idem_key = d.idem_key AND l.decision_id = d.decision_id
    LEFT JOIN idempotency_record i ON i.tenant_id = d.tenant_id AND i.idem_key = d.idem_key`;

/** The two kinds of decision, each by the index that finds it in order: those with an entry, and the few without. */
const RECORDED = {
  from: `FROM ledger_entry l
      JOIN decision_record d ON d.tenant_id = l.tenant_id AND d.decision_id = l.decision_id
      LEFT JOIN idempotency_record i ON false`,
  where: 'l.tenant_id = $1',
  at: 'l.recorded_at',
};
const UNFINISHED = {
  from: `FROM idempotency_record i
      JOIN decision_record d ON d.tenant_id = i.tenant_id AND d.decision_id = i.decision_id
      LEFT JOIN ledger_entry l ON false`,
  where: `i.tenant_id = $1 AND i.status <> 'completed'`,
  at: 'd.received_at',
};

/** Answers questions about what was decided. */
@Injectable()
export class DecisionReader {
  constructor(private readonly database: Database) {}

  /** @throws Problem `not-found` */
  async one(tenant: string, decisionId: string): Promise<Record<string, unknown>> {
    return this.database.transaction(tenant, async (tx) => {
      const [found] = await tx.query<OneRow[]>(ONE, [tenant, decisionId]);
      if (found === undefined) throw new Problem('not-found', 'There is no such decision.');
      const counts = await tx.query<{ disposition: string; count: number }[]>(ATTEMPTS, [tenant, decisionId]);
      return oneDecision(found, counts, tenant);
    });
  }

  /** @throws Problem `validation-failed` for a cursor that belongs to another question, or to none */
  async list(
    tenant: string,
    { filters, order, limit, cursor }: ListQuestion,
  ): Promise<{ items: DecisionListRow[]; nextCursor: string | null }> {
    const question = JSON.stringify([tenant, order, Object.entries(filters).toSorted()]);
    const position = cursor === null ? null : readCursor(question, cursor);
    if (cursor !== null && position === null) {
      throw validationFailed([
        {
          pointer: 'cursor',
          detail: 'belongs to another question: send it with the filters and the order it came with',
        },
      ]);
    }
    const where = whereOf(tenant, filters, 4);
    const isAfter = order === 'asc' ? '>' : '<';
    const page = ({ from, where: of, at }: typeof RECORDED): string =>
      `(SELECT ${LIST_ROW} AS row, ${at} AS at, d.decision_id ${from}
         WHERE ${of} AND ($2::timestamptz IS NULL OR (${at}, d.decision_id) ${isAfter} ($2::timestamptz, $3::uuid))${where.sql}
         ORDER BY ${at} ${order}, d.decision_id ${order}
         LIMIT ${limit + 1})`;
    const rows = await this.database.transaction(tenant, (tx) =>
      tx.query<{ row: DecisionListRow; at: string }[]>(
        `SELECT row, rfc3339(at) AS at FROM (${[RECORDED, UNFINISHED].map(page).join(' UNION ALL ')}) both_kinds
          ORDER BY both_kinds.at ${order}, decision_id ${order}
          LIMIT ${limit + 1}`,
        [tenant, position?.recordedAt ?? null, position?.decisionId ?? null, ...where.parameters],
      ),
    );
    const shown = rows.slice(0, limit);
    const last = shown.at(-1);
    const hasMore = rows.length > limit && last !== undefined;
    return {
      items: shown.map(({ row }) => row),
      nextCursor: hasMore ? writeCursor(question, { recordedAt: last.at, decisionId: last.row.decisionId }) : null,
    };
  }

  /** @throws Problem `not-found` */
  async idempotencyRecord(tenant: string, key: string): Promise<IdempotencyRecordView> {
    const [record] = await this.database.transaction(tenant, (tx: Transaction) =>
      tx.query<IdempotencyRecordView[]>(RECORD, [tenant, key]),
    );
    if (record === undefined) throw new Problem('not-found', 'There is no record of such a key.');
    return record;
  }
}

interface OneRow {
  row: DecisionListRow;
  fingerprint: string;
  canonical_inputs: string;
  note: string | null;
  evidence: Record<string, unknown> | null;
  received_at: string;
  winner: string | null;
  result: string | null;
  recorded_by: string | null;
  expires_at: string | null;
}

const ONE = `
  SELECT ${LIST_ROW} AS row, encode(d.fingerprint, 'hex') AS fingerprint, d.inputs AS canonical_inputs, d.note,
         (SELECT a.evidence FROM attempt a WHERE a.tenant_id = d.tenant_id AND a.decision_id = d.decision_id 
             AND a.disposition IN ('created', 'refused') ORDER BY a.received_at, a.attempt_id LIMIT 1) AS evidence,
         rfc3339(d.received_at) AS received_at, l.winner_decision_id AS winner, l.result, l.credential_id AS recorded_by,
         rfc3339(l.response_expires_at) AS expires_at
    ${FROM}
   WHERE d.tenant_id = $1 AND d.decision_id = $2`;

const ATTEMPTS = `
  SELECT disposition, count(*)::integer AS count FROM attempt
   WHERE tenant_id = $1 AND decision_id = $2 GROUP BY disposition ORDER BY disposition`;

/** A key whose record was pruned is told from what outlives it: its entry, or its binding. */
const RECORD = `
  SELECT i.idem_key AS key, i.key_source AS "keySource", CASE WHEN i.expires_at <= now() THEN 'expired' ELSE i.status END AS status,
         encode(i.fingerprint, 'hex') AS fingerprint, i.decision_id AS "decisionId", rfc3339(i.locked_until) AS "lockedUntil",
         rfc3339(i.created_at) AS "createdAt", rfc3339(i.expires_at) AS "expiresAt"
    FROM idempotency_record i WHERE i.tenant_id = $1 AND i.idem_key = $2
  UNION ALL
  SELECT d.idem_key, d.key_source, 'expired', encode(d.fingerprint, 'hex'), d.decision_id, NULL, rfc3339(d.received_at), rfc3339(l.response_expires_at)
    FROM ledger_entry l JOIN decision_record d ON d.tenant_id = l.tenant_id AND d.decision_id = l.decision_id
   WHERE l.tenant_id = $1 AND l.idem_key = $2
  UNION ALL
  SELECT b.idem_key, b.key_source, 'expired', encode(b.fingerprint, 'hex'), b.decision_id, NULL, rfc3339(b.bound_at), rfc3339(l.response_expires_at)
    FROM bound_key b
    JOIN decision_record d ON d.tenant_id = b.tenant_id AND d.decision_id = b.decision_id
    JOIN ledger_entry l ON l.tenant_id = d.tenant_id AND l.idem_key = d.idem_key
   WHERE b.tenant_id = $1 AND b.idem_key = $2
  LIMIT 1`;

/** The three views of one event: the request, the effect, the entry. */
function oneDecision(
  found: OneRow,
  counts: readonly { disposition: string; count: number }[],
  tenant: string,
): Record<string, unknown> {
  const { row, note } = found;
  const inputs: JsonValue = JSON.parse(found.canonical_inputs);
  const digest =
    row.keySource === 'content' ? sha256(found.canonical_inputs) : downstreamDigest({ tenantId: tenant, key: row.key });
  return {
    ...row,
    fingerprint: found.fingerprint,
    request: { inputs, note, firstEvidence: found.evidence, receivedAt: found.received_at },
    effect:
      row.effectId === null
        ? null
        : {
            effectId: row.effectId,
            kind: row.action,
            status: 'applied',
            externalRef: row.externalRef,
            result: found.result === null ? null : JSON.parse(found.result),
          },
    ledgerEntry:
      row.ledgerEntryId === null
        ? null
        : {
            ledgerEntryId: row.ledgerEntryId,
            outcome: row.outcome?.status,
            reason: row.outcome?.reason ?? null,
            winnerDecisionId: found.winner,
            recordedAt: row.recordedAt,
            recordedBy: found.recorded_by,
            responseExpiresAt: found.expires_at,
          },
    attempts: {
      total: counts.reduce((total, { count }) => total + count, 0),
      byDisposition: Object.fromEntries(counts.map(({ disposition, count }) => [disposition, count])),
    },
    downstreamKeys: downstreamKeys({ key: row.key, digest }),
  };
}
