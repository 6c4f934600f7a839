import { isGroupName, type GroupName, type Paging } from '#ledger';
import { OneOf, Text, WholeText } from '../fields/index.js';

const DEFAULT_LIMIT = 50;
/** A cursor carries the snapshot in which its walk began: about a dozen characters for each transaction under way then. */
const CURSOR_LENGTH = 4_096;

export const LimitField = (): PropertyDecorator =>
  WholeText({ description: 'How many rows a page has.', default: DEFAULT_LIMIT, min: 1, max: 500, optional: true });

export const OrderField = (): PropertyDecorator =>
  OneOf({ description: 'The order of recording.', default: 'asc', values: ['asc', 'desc'], optional: true });

export const CursorField = (
  description = 'Where the last page ended: its nextCursor, sent with the same filters and order.',
): PropertyDecorator => Text({ description, max: CURSOR_LENGTH, optional: true });

interface Paged {
  readonly limit?: string;
  readonly order?: 'asc' | 'desc';
  readonly cursor?: string;
}

/** Splits a query into its filters and what it says of paging. */
export function pagedOf<T extends Paged>({ limit, order, cursor, ...filters }: T): [Omit<T, keyof Paged>, Paging] {
  return [filters, { order: order ?? 'asc', limit: Number(limit ?? DEFAULT_LIMIT), cursor: cursor ?? null }];
}

/** Splits a query into its filters and what it counts by. Its names were looked at when it was bound. */
export function countedBy<T extends { readonly groupBy?: string }>({
  groupBy,
  ...filters
}: T): [Omit<T, 'groupBy'>, GroupName[]] {
  return [filters, (groupBy?.split(',') ?? []).filter(isGroupName)];
}
