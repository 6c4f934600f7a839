import { Injectable } from '@nestjs/common';
import { Database } from '#database';
import { LIST_MEMBERS, OF_PAGE, type DecisionListRow } from './decision-list-row.js';
import { DECISION_FILTERS, whereOf, type DecisionFilters } from './filters.js';
import { LEAF_OF_ENTRY, SALTS } from './leaf-members.js';
import { Parameters } from './parameters.js';
import { lookForFew } from './settings.js';
import { DECISIONS, RECORDED_SINCE } from './source.js';
import { cursorOf, walk, type Paging } from './walk.js';

/** A decision as it is exported. `inputs` and `result` are RFC 8785 text: the bytes that were hashed. */
export interface ExportRow {
  readonly shown: DecisionListRow & {
    fingerprint: string;
    note: string | null;
    leafIndex: number | null;
    salts: Salts | null;
  };
  readonly inputs: string;
  readonly result: string | null;
  /** Goes on behind this row. */
  readonly cursor: string;
}

/** Base64url; null beside what is not there. */
export interface Salts {
  readonly params: string;
  readonly note: string | null;
  readonly result: string | null;
}

const EXPORT_ROW = `json_build_object('inputs', d.inputs, 'result', l.result, 'shown', json_build_object(${LIST_MEMBERS},
  'fingerprint', encode(d.fingerprint, 'hex'), 'note', d.note, 'leafIndex', g.leaf_index,
  'salts', CASE WHEN l.idem_key IS NOT NULL THEN ${SALTS} END))`;

const ROWS_AT_ONCE = 1_000;

/** Everything that some filters hold for, row by row, in bounded memory. */
@Injectable()
export class DecisionExport {
  constructor(private readonly database: Database) {}

  /**
   * Looks at the cursor at once; the rows are read as they are asked for. No connection is held while nobody asks, so a
   * slow reader costs nothing. A range that is closed by `recordedTo` gives the same rows, and cursors, every time.
   *
   * @throws Problem `validation-failed` for a cursor that belongs to another question, or to none
   */
  rows(tenant: string, filters: DecisionFilters, { order, cursor }: Omit<Paging, 'limit'>): AsyncGenerator<ExportRow> {
    const question = ['export', tenant, Object.entries(filters).toSorted()];
    let from = cursorOf(question, { order, limit: ROWS_AT_ONCE, cursor });
    const { database } = this;
    return (async function* () {
      for (;;) {
        const parameters = new Parameters(tenant);
        const walked = await database.transaction(tenant, async (tx) => {
          await lookForFew(tx);
          return walk<Omit<ExportRow, 'cursor'>>(
            tx,
            {
              question,
              parameters,
              sources: DECISIONS,
              since: RECORDED_SINCE,
              isOverMovingRows: filters.recordedTo === undefined,
              conditionOf: (source) => whereOf(DECISION_FILTERS, filters, source, parameters),
              row: EXPORT_ROW,
              joins: `${OF_PAGE} ${LEAF_OF_ENTRY}`,
              size: `octet_length(d.inputs) + coalesce(octet_length(d.note), 0) + coalesce(octet_length(l.result), 0)`,
            },
            { order, limit: ROWS_AT_ONCE, cursor },
            from,
          );
        });
        for (const { row, cursor: behind } of walked) yield { ...row, cursor: behind };
        const last = walked.at(-1);
        if (last === undefined) return;
        from = cursorOf(question, { order, limit: ROWS_AT_ONCE, cursor: last.cursor });
      }
    })();
  }
}
