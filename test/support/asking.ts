import { expect } from '@jest/globals';
import { pathOf, type Asked, type Question } from '../../apps/api/src/reading/questions/question.js';
import type { Client } from './client.js';
import type { Arrived } from './chronicle.js';

export type Row = Record<string, any>; // eslint-disable-line -- a test looks into answers of every shape

/** Sends the requests of one question as the guide has them, with other values. */
export class Asker {
  /** The requests that were answered with everything that the guide shows of their answers. */
  readonly answered = new Set<Asked>();

  constructor(
    private readonly auditor: Client,
    private readonly question: Question,
  ) {}

  /** The answer to the nth request. Only its values may differ from the guide's, never its parameters. */
  async ask(n: number, values: Readonly<Record<string, string>> = {}): Promise<Row> {
    const text = await this.text(n, values);
    return JSON.parse(text);
  }

  /** The rows of the nth request, which is an export, without the trailer; that is looked at. */
  async export(n: number, values: Readonly<Record<string, string>> = {}): Promise<Row[]> {
    const lines: Row[] = (await this.text(n, values))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.at(-1)?.['trailer'].rows).toBe(lines.length - 1);
    return lines.slice(0, -1);
  }

  async text(n: number, values: Readonly<Record<string, string>> = {}): Promise<string> {
    const asked = this.question.requests[n];
    if (asked === undefined) throw new Error(`The question has no request ${n}`);
    const known = { ...asked.params, ...asked.query };
    expect(Object.keys(known)).toEqual(expect.arrayContaining(Object.keys(values)));
    const put = (pairs: Readonly<Record<string, string>> = {}): Record<string, string> =>
      Object.fromEntries(Object.entries(pairs).map(([name, value]) => [name, values[name] ?? value]));
    const reply = await this.auditor.get(pathOf({ ...asked, params: put(asked.params), query: put(asked.query) }));
    expect([reply.status, reply.status === 200 ? '' : reply.text]).toEqual([200, '']);
    const real: unknown =
      asked.operation === 'exportDecisions'
        ? reply.text
            .trimEnd()
            .split('\n')
            .map((line) => JSON.parse(line))
        : reply.body;
    if (missing(asked.answer, real).length === 0) this.answered.add(asked);
    return reply.text;
  }
}

/** What the guide shows and a real answer does not have, by its place: a worked example must not promise more. */
function missing(shown: unknown, real: unknown, place = ''): string[] {
  if (shown === null || real === null) return real === undefined ? [place] : [];
  if (Array.isArray(shown)) {
    if (!Array.isArray(real)) return [place];
    if (real.length === 0) return shown.length === 0 ? [] : [`${place}[]`];
    // Rows may differ in what they have; each that is shown must be like one that is there.
    return shown.flatMap((item: unknown) => {
      const found = real.map((one: unknown) => missing(item, one, `${place}[]`));
      return found.some((lacking) => lacking.length === 0) ? [] : (found[0] ?? []);
    });
  }
  if (typeof shown !== 'object') return typeof shown === typeof real ? [] : [place];
  if (typeof real !== 'object') return [place];
  const members = new Map<string, unknown>(Object.entries(real));
  return Object.entries(shown).flatMap(([name, value]) => missing(value, members.get(name), `${place}/${name}`));
}

/** How many rows there are in all and for each value; its groups are in an order of this test's own. */
export function counted<T>(rows: readonly T[], valueOf: (row: T) => Row): Row {
  const counts = new Map<string, number>();
  for (const row of rows) {
    const value = JSON.stringify(valueOf(row));
    counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return inOrder({
    total: rows.length,
    groups: [...counts].map(([value, count]) => ({ ...JSON.parse(value), count })),
  });
}

/** A count with its groups in the order of their text. */
export function inOrder({ groups, ...rest }: Row): Row {
  const texts: string[] = groups.map((group: Row) => JSON.stringify(group)).toSorted();
  return { ...rest, groups: texts.map((text) => JSON.parse(text)) };
}

/** An attempt as it must be shown. */
export const attemptOf = ({ key, disposition, won, run, step, credentialId, decided }: Arrived): Row => ({
  decisionId: decided.decisionId,
  key,
  action: decided.plan.action,
  disposition,
  won,
  evidence: run === null ? null : expect.objectContaining({ runId: run, stepId: step }),
  credentialId,
});
