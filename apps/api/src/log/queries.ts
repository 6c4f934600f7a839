import { ENTRY_ID } from '../decisions/sample.js';
import { Id, WholeText } from '../fields/index.js';

/** What a parameter of ten digits can say; a larger tree than this is beyond every checkpoint. */
const LARGEST_SIZE = 9_999_999_999;

export class InclusionQuery {
  @Id({ description: 'The entry, as the answer to its decision names it.', example: ENTRY_ID })
  ledgerEntryId: string;
}

export class ConsistencyQuery {
  @WholeText({
    description: 'The size of the older tree, from a checkpoint that you kept.',
    example: 1,
    min: 1,
    max: LARGEST_SIZE,
  })
  first: string;

  @WholeText({
    description: 'The size of the newer tree, from a later checkpoint.',
    example: 2,
    min: 1,
    max: LARGEST_SIZE,
  })
  second: string;
}
