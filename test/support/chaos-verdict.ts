import { effectsAndEntries } from './audit.js';
import { LEASE_SECONDS } from './chaos-plan.js';
import type { Play } from './chaos-play.js';
import type { ChaosStage } from './chaos-stage.js';
import { acceptedTooLate } from './chaos-witness.js';
import { clientsOf } from './index.js';
import { until } from './stage.js';

/** So long after the last request the sweeper has come by and the queue is worked off, also on a busy machine. */
const REST_MS = 40_000;
const MOST_LIVES_TO_THE_END = 12;

/** How a key stands. */
export interface Standing {
  readonly status: 'in_flight' | 'failed' | 'unknown' | 'completed';
  readonly isLapsed: boolean;
  readonly isQueued: boolean;
  readonly isToBeMarked: boolean;
  readonly decisionId: string;
}

/** Null if nobody's request came through. */
export async function standing({ database }: ChaosStage, key: string): Promise<Standing | null> {
  const [row] = await database.query<Record<keyof Standing, never>>(
    `SELECT i.status, coalesce(i.locked_until <= clock_timestamp(), false) AS "isLapsed", i.decision_id::text AS "decisionId",
            EXISTS (SELECT FROM dispatch q WHERE q.tenant_id = i.tenant_id AND q.decision_id = i.decision_id) AS "isQueued",
            i.on_expired_lease = 'unknown' OR i.reclaims >= 5 AS "isToBeMarked"
       FROM idempotency_record i WHERE i.idem_key = $1`,
    [key],
  );
  return row ?? null;
}

/** Whether a key has come to an end, or the next request for it may run it. */
function isAtRest(one: Standing | null): boolean {
  if (one === null || one.status !== 'in_flight') return true;
  return !one.isQueued && one.isLapsed && !one.isToBeMarked;
}

/** How a key stands once nobody works on it any more: after the lease and a sweep. What is wrong then, in words. */
export async function atRest(stage: ChaosStage, { key }: Play): Promise<{ one: Standing | null; wrong: string[] }> {
  await until(async () => stage.provider.isQuiet(), Boolean, REST_MS);
  const one = await until(() => standing(stage, key), isAtRest, REST_MS);
  return {
    one,
    wrong: isAtRest(one) ? [] : [`stuck ${REST_MS} ms after a lease of ${LEASE_SECONDS} s: ${JSON.stringify(one)}`],
  };
}

/** What must never be, whatever has happened to a key so far. */
export async function wrongSoFar(stage: ChaosStage, play: Play): Promise<string[]> {
  const { key } = play;
  const E = stage.provider.effects(key);
  const { L } = await effectsAndEntries(stage.database, key);
  const late = await acceptedTooLate(stage.database, key);
  const runs = play.lines().filter(({ what }) => what === 'runs');
  const leases = runs.map(({ lease }) => lease);
  return [
    ...(E > 1 ? [`E = ${E}`] : []),
    ...(L > 1 ? [`${L} ledger entries`] : []),
    ...late.map(({ shown, newest }) => `accepted from lease ${shown} when ${newest} had been given`),
    ...(new Set(leases).size < leases.length ? [`ran twice under one lease: ${leases.join(', ')}`] : []),
  ];
}

/**
 * Leads a key to its recorded outcome as its owners would: an undisturbed client asks again, and what is unknown is resolved
 * by what the provider knows.
 */
export async function ledToTheEnd(stage: ChaosStage, play: Play): Promise<string[]> {
  for (let lives = 0; lives < MOST_LIVES_TO_THE_END; lives += 1) {
    const { one, wrong } = await atRest(stage, play);
    if (wrong.length > 0) return wrong;
    if (one?.status === 'completed') return [];
    if (one?.status === 'unknown') await resolve(stage, play, one.decisionId);
    else await play.undisturbed();
  }
  return [`no outcome after ${MOST_LIVES_TO_THE_END} more lives: ${JSON.stringify(await standing(stage, play.key))}`];
}

async function resolve(stage: ChaosStage, play: Play, decisionId: string): Promise<void> {
  const isApplied = stage.provider.effects(play.key) > 0;
  const body = isApplied
    ? { outcome: { status: 'applied', result: { reference: `ref-${play.key}` } } }
    : { release: true, reason: 'The provider knows nothing of it.' };
  const { status, text } = await clientsOf(stage.apiUrl(), stage.tokens).admin.post(
    `/v1/decisions/${decisionId}/resolution`,
    body,
  );
  play.note('resolution', { body, status, text });
}

/** What must hold of a key that has its outcome. */
export async function wrongInTheEnd(stage: ChaosStage, play: Play): Promise<string[]> {
  const { key, body, schedule } = play;
  const applied = Number(!schedule.refuses);
  const wrong = await wrongSoFar(stage, play);
  const { W, L } = await effectsAndEntries(stage.database, key);
  const E = stage.provider.effects(key);
  if (E !== applied || W !== applied || L !== 1)
    wrong.push(`E = ${E}, W = ${W}, L = ${L}, not ${applied}, ${applied}, 1`);
  const now = await clientsOf(stage.apiUrl(), stage.tokens).orchestrator.decide(body, key);
  if (now.status !== (schedule.refuses ? 409 : 201) || now.headers.get('idempotent-replayed') !== 'true')
    wrong.push(`the service answers ${now.status} ${now.text}`);
  for (const line of play.lines()) {
    if (line.what === 'told' && line.text !== now.text)
      wrong.push(`${line.who} was told ${line.text}, now it is ${now.text}`);
    const { result } = line;
    if (
      line.what === 'says' &&
      result !== undefined &&
      JSON.stringify(result) !== JSON.stringify(now.body.outcome?.result)
    )
      wrong.push(`${line.who} said ${JSON.stringify(result)}, now it is ${now.text}`);
  }
  return wrong;
}

/** All that is known of a schedule, in the order of time: to be read by whoever looks for the cause. */
export async function timeline(stage: ChaosStage, play: Play): Promise<string> {
  const attempts = await stage.database.query<{ at: number }>(
    `SELECT extract(epoch FROM received_at)::double precision * 1000 AS at, disposition, won, problem, latency_ms, credential_id
       FROM attempt WHERE idem_key = $1`,
    [play.key],
  );
  const arrivals = stage.provider.arrivals(play.key).map(({ at, overlaps }) => ({ at, who: 'provider', overlaps }));
  const all: (object & { at: number })[] = [
    ...play.lines(),
    ...arrivals,
    ...attempts.map((attempt) => ({ who: 'database', ...attempt })),
  ];
  const sorted = all.sort((a, b) => a.at - b.at);
  const began = sorted[0]?.at ?? 0;
  return sorted
    .map(({ at, ...rest }) => `${(at - began).toFixed(0).padStart(6)} ms ${JSON.stringify(rest)}`)
    .join('\n');
}

/** How many of the lines are of a kind: for the figures. */
export function tally(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}
