import { Injectable } from '@nestjs/common';
import { Database } from '#database';
import { Problem } from '#problem';
import { DECISION_FILTERS, whereOf, type DecisionFilters } from './filters.js';
import { Parameters } from './parameters.js';
import { RECORDED, type Source } from './source.js';
import { cursorOf, pageOf, walk, type Page, type Paging } from './walk.js';

/** The members of an entry's leaf, its place in the log, and the salts of its digests. */
export type EntryView = Record<string, unknown> & { ledgerEntryId: string };

const base64url = (bytes: string): string => `translate(encode(${bytes}, 'base64'), '+/=', '-_')`;

/** SHA-256 over the salt and the RFC 8785 bytes of a value; NULL where there is none. */
const digest = (salt: string, text: string): string => `encode(sha256(${salt} || convert_to(${text}, 'UTF8')), 'hex')`;

/** The params as they stand in the canonical inputs: `json` keeps the text of a member as it is. */
const PARAMS = `(d.inputs::json->'params')::text`;

/** Text as RFC 8785 writes it is text as PostgreSQL writes it in JSON. */
const NOTE = 'to_json(d.note)::text';

/** Base64url, without a salt for what is not there. */
export const SALTS = `json_build_object('params', ${base64url('l.params_salt')},
  'note', CASE WHEN d.note IS NOT NULL THEN ${base64url('l.note_salt')} END,
  'result', CASE WHEN l.result IS NOT NULL THEN ${base64url('l.result_salt')} END)`;

const ENTRY_ROW = `json_build_object('v', 1, 'tenant', l.tenant_id, 'ledgerEntryId', l.ledger_entry_id, 'decisionId', l.decision_id,
  'key', l.idem_key, 'keySource', d.key_source, 'contentKey', content_key(d.tenant_id, d.content_hash), 'fingerprint', encode(d.fingerprint, 'hex'),
  'action', d.action, 'actionVersion', d.action_version, 'subject', json_build_object('type', d.subject_type, 'id', d.subject_id),
  'reportingPeriod', d.reporting_period, 'outcome', l.outcome, 'reason', l.reason,
  'model', json_build_object('id', d.model_id, 'version', d.model_version), 'promptTemplateSha256', encode(d.prompt_template_sha256, 'hex'),
  'retrievalSnapshotId', d.retrieval_snapshot_id, 'policyVersion', d.policy_version, 'effectId', l.effect_id, 'externalRef', l.external_ref,
  'recordedBy', l.credential_id, 'recordedAt', rfc3339(l.recorded_at), 'paramsDigest', ${digest('l.params_salt', PARAMS)},
  'noteDigest', ${digest('l.note_salt', NOTE)}, 'resultDigest', ${digest('l.result_salt', 'l.result')},
  'leafIndex', NULL, 'salts', ${SALTS})`;

const DECISION_OF_ENTRY = 'JOIN decision_record d ON d.decision_id = l.decision_id AND d.tenant_id = l.tenant_id';

/** Entries of the ledger stand in the order of the decisions that they record. */
const ENTRIES: Source = { ...RECORDED, id: 'f.ledger_entry_id' };

/** Answers questions about the ledger's entries. */
@Injectable()
export class EntryReader {
  constructor(private readonly database: Database) {}

  /** @throws Problem `not-found` */
  async one(tenant: string, ledgerEntryId: string): Promise<EntryView> {
    const [found] = await this.database.transaction(tenant, (tx) =>
      tx.query<{ row: EntryView }[]>(
        `SELECT ${ENTRY_ROW} AS row FROM ledger_entry l ${DECISION_OF_ENTRY} WHERE l.tenant_id = $1 AND l.ledger_entry_id = $2`,
        [tenant, ledgerEntryId],
      ),
    );
    if (found === undefined) throw new Problem('not-found', 'There is no such ledger entry.');
    return found.row;
  }

  /** @throws Problem `validation-failed` for a cursor that belongs to another question, or to none */
  async list(tenant: string, filters: DecisionFilters, paging: Paging): Promise<Page<EntryView>> {
    const question = ['entries', tenant, Object.entries(filters).toSorted()];
    const from = cursorOf(question, paging);
    const parameters = new Parameters(tenant);
    const walked = await this.database.transaction(tenant, (tx) =>
      walk<EntryView>(
        tx,
        {
          question,
          parameters,
          sources: [ENTRIES],
          isOverMovingRows: true,
          conditionOf: (source) => whereOf(DECISION_FILTERS, filters, source, parameters),
          row: ENTRY_ROW,
          joins: `JOIN ledger_entry l ON l.ledger_entry_id = p.id AND l.tenant_id = $1 ${DECISION_OF_ENTRY}`,
        },
        paging,
        from,
      ),
    );
    return pageOf(walked, paging.limit);
  }
}
