import { Injectable } from '@nestjs/common';
import { Database, type Transaction } from '#database';
import { downstreamDigest, downstreamKeys, sha256, type JsonValue } from '#key';
import { Problem } from '#problem';
import { FROM, LIST_ROW, OF_PAGE, type DecisionListRow } from './decision-list-row.js';
import { DECISION_FILTERS, whereOf, type DecisionFilters } from './filters.js';
import { countedOf, countSql, type Counted, type GroupName } from './groups.js';
import { Parameters } from './parameters.js';
import { lookForFew, lookForMany } from './settings.js';
import { DECISIONS, RECORDED_SINCE, type Source } from './source.js';
import { cursorOf, pageOf, walk, type Page, type Paging } from './walk.js';

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
  async list(tenant: string, filters: DecisionFilters, paging: Paging): Promise<Page<DecisionListRow>> {
    const question = ['decisions', tenant, Object.entries(filters).toSorted()];
    const from = cursorOf(question, paging);
    const parameters = new Parameters(tenant);
    const walked = await this.database.transaction(tenant, async (tx) => {
      await lookForFew(tx);
      return walk<DecisionListRow>(
        tx,
        {
          question,
          parameters,
          sources: DECISIONS,
          since: RECORDED_SINCE,
          isOverMovingRows: true,
          conditionOf: (source) => whereOf(DECISION_FILTERS, filters, source, parameters),
          row: LIST_ROW,
          joins: OF_PAGE,
        },
        paging,
        from,
      );
    });
    return pageOf(walked, paging.limit);
  }

  /** How many decisions the filters hold for: keys, not tries. @throws Problem `validation-failed` for too many groups */
  async count(tenant: string, filters: DecisionFilters, groupBy: readonly GroupName[]): Promise<Counted> {
    const parameters = new Parameters(tenant);
    const conditionOf = (source: Source): string => whereOf(DECISION_FILTERS, filters, source, parameters);
    const sql = countSql(DECISIONS, conditionOf, groupBy);
    const rows = await this.database.transaction(tenant, async (tx) => {
      await lookForMany(tx);
      return tx.query<{ counted: Record<string, unknown> }[]>(sql, parameters.values);
    });
    return countedOf(rows, groupBy);
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
