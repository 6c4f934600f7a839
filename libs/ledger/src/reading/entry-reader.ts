import { Injectable } from '@nestjs/common';
import { Database } from '#database';
import { Problem } from '#problem';
import { DECISION_FILTERS, whereOf, type DecisionFilters } from './filters.js';
import { DECISION_OF_ENTRY, LEAF_MEMBERS, LEAF_OF_ENTRY, SALTS } from './leaf-members.js';
import { Parameters } from './parameters.js';
import { lookForFew } from './settings.js';
import { ALL_RECORDED, type Source } from './source.js';
import { cursorOf, pageOf, walk, type Page, type Paging } from './walk.js';

/** The members of an entry's leaf, its place in the log, and the salts of its digests. */
export type EntryView = Record<string, unknown> & { ledgerEntryId: string };

/** The entry as its leaf has it, and beside it what is no part of the leaf. */
const ENTRY_ROW = `json_build_object(${LEAF_MEMBERS}, 'leafIndex', g.leaf_index, 'salts', ${SALTS})`;

/** Entries of the ledger stand in the order of the decisions that they record. */
const ENTRIES: readonly Source[] = ALL_RECORDED.map((source) => ({ ...source, id: 'f.ledger_entry_id' }));

/** Answers questions about the ledger's entries. */
@Injectable()
export class EntryReader {
  constructor(private readonly database: Database) {}

  /** @throws Problem `not-found` */
  async one(tenant: string, ledgerEntryId: string): Promise<EntryView> {
    const [found] = await this.database.transaction(tenant, (tx) =>
      tx.query<{ row: EntryView }[]>(
        `SELECT ${ENTRY_ROW} AS row FROM ledger_entry l ${DECISION_OF_ENTRY} ${LEAF_OF_ENTRY} WHERE l.tenant_id = $1 AND l.ledger_entry_id = $2`,
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
    const walked = await this.database.transaction(tenant, async (tx) => {
      await lookForFew(tx);
      return walk<EntryView>(
        tx,
        {
          question,
          parameters,
          sources: ENTRIES,
          isOverMovingRows: true,
          conditionOf: (source) => whereOf(DECISION_FILTERS, filters, source, parameters),
          row: ENTRY_ROW,
          joins: `JOIN ledger_entry l ON l.ledger_entry_id = p.id AND l.tenant_id = $1 ${DECISION_OF_ENTRY} ${LEAF_OF_ENTRY}`,
        },
        paging,
        from,
      );
    });
    return pageOf(walked, paging.limit);
  }
}
