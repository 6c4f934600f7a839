/** The reading routes, by the id of their operation. */
export const READING_ROUTES = {
  countDecisions: '/v1/decisions/count',
  listDecisions: '/v1/decisions',
  getDecision: '/v1/decisions/{decisionId}',
  countAttempts: '/v1/attempts/count',
  listAttempts: '/v1/attempts',
  exportDecisions: '/v1/exports/decisions',
  listActionVersions: '/v1/actions/{action}/versions',
  listAccesses: '/v1/access-log',
} as const;

export type ReadingOperation = keyof typeof READING_ROUTES;

/** One request of an auditor, with sample values, and its answer. */
export interface Asked {
  /** Which half of the question it answers, where it takes more than one. */
  readonly part?: string;
  readonly operation: ReadingOperation;
  /** The parameters of the path. */
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  /** What is done with the answer on the command line. */
  readonly pipe?: string;
  /** The answer, shortened to what the question is about; of an export, its lines. */
  readonly answer: unknown;
}

/** A question in an auditor's words, and how it is answered. A test asks each of them. */
export interface Question {
  readonly id: string;
  readonly question: string;
  /** What to know before one asks. */
  readonly before: string;
  readonly requests: readonly [Asked, ...Asked[]];
  /** How to read the answer. */
  readonly reading: string;
}

/** The path and query of a request, encoded as far as a URL needs it and no further, so that it can be read. */
export function pathOf({ operation, params = {}, query = {} }: Pick<Asked, 'operation' | 'params' | 'query'>): string {
  const path = READING_ROUTES[operation].replaceAll(/\{(\w+)\}/g, (_all, name: string) => encoded(params[name] ?? ''));
  const pairs = Object.entries(query).map(([name, value]) => `${name}=${encoded(value)}`);
  return pairs.length === 0 ? path : `${path}?${pairs.join('&')}`;
}

const encoded = (text: string): string =>
  encodeURIComponent(text).replaceAll(/%(3A|2C|2F|7B|7D)/g, (escape) => decodeURIComponent(escape));

/** An answer as it comes: of an export a JSON object a line, of every other route one JSON value. */
export function textOf({ operation, answer }: Asked): unknown {
  if (operation !== 'exportDecisions' || !Array.isArray(answer)) return answer;
  return answer.map((line) => `${JSON.stringify(line)}\n`).join('');
}
