/** Stands for a parameter whose percent-encoding is not UTF-8: it is refused, not read as some other text. */
export const UNDECODABLE: unique symbol = Symbol('undecodable');

export type QueryValue = string | typeof UNDECODABLE;

/** A query as its parameters: a list where one came more than once. Names like `__proto__` are names. */
export function parseQueryString(text: string): Record<string, QueryValue | QueryValue[]> {
  const query: Record<string, QueryValue | QueryValue[]> = Object.create(null);
  for (const pair of text.split('&')) {
    if (pair === '') continue;
    const [name = '', ...rest] = pair.split('=');
    const key = decoded(name);
    const value = decoded(rest.join('='));
    const at = key === UNDECODABLE ? name : key;
    const now: QueryValue = key === UNDECODABLE ? UNDECODABLE : value;
    const before = query[at];
    if (before === undefined) query[at] = now;
    else query[at] = Array.isArray(before) ? [...before, now] : [before, now];
  }
  return query;
}

function decoded(text: string): QueryValue {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return UNDECODABLE;
  }
}
