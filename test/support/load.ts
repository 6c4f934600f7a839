import { expect } from '@jest/globals';
import { violations, type Auditable } from './audit.js';
import { isReplay, type Call, type Callers, type Said } from './callers.js';

/** How many answers of a load there were of each kind. */
export function kindsOf(said: readonly Said[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { kind, count } of said) counts[kind] = (counts[kind] ?? 0) + count;
  return counts;
}

/**
 * What must hold when a load under which something died is over: whoever was told an outcome was told the same bytes as
 * everybody else and is told them again; at most one was told them first; no invariant is broken, no key is blocked, and
 * every request runs in the end. `calls` are all of the load's, with the URL of a service that lives.
 */
export async function expectAllStands(
  database: Auditable,
  callers: Callers,
  calls: readonly Call[],
  said: readonly Said[],
): Promise<void> {
  // Before the retries: what died must have left nothing half-done.
  expect(await violations(database)).toEqual([]);
  const told = new Map<string, string>();
  const firsts = new Map<string, number>();
  for (const { id, kind, text, count, isReplay: again } of said) {
    if (text === null) continue;
    expect([id, told.get(id) ?? `${kind} ${text}`]).toEqual([id, `${kind} ${text}`]);
    told.set(id, `${kind} ${text}`);
    if (!again) firsts.set(id, (firsts.get(id) ?? 0) + count);
  }
  const entries = await database.query<{ idem_key: string }>('SELECT idem_key FROM ledger_entry');
  const recorded = new Set(entries.map(({ idem_key }) => idem_key));
  expect([...told.keys()].filter((id) => !recorded.has(id))).toEqual([]);

  const retried = await callers.send(calls);
  calls.forEach(({ id = '' }, index) => {
    const reply = retried[index];
    if (reply === undefined) throw new Error('There is no reply');
    expect([id, reply.headers['idempotency-expires'] ?? reply.text]).toEqual([id, expect.stringContaining('GMT')]);
    expect(`${reply.status} ${reply.text}`).toBe(told.get(id) ?? `${reply.status} ${reply.text}`);
    expect([id, isReplay(reply)]).toEqual([id, recorded.has(id)]);
    if (!isReplay(reply)) firsts.set(id, (firsts.get(id) ?? 0) + 1);
  });
  expect([...firsts].filter(([, count]) => count > 1)).toEqual([]);
  const after = await database.query('SELECT FROM ledger_entry WHERE idem_key = ANY ($1)', [calls.map(({ id }) => id)]);
  expect(after).toHaveLength(calls.length);
  expect(await violations(database)).toEqual([]);
}
