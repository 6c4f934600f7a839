import type { Step } from './provider.js';
import { seeded } from './rounds.js';

/** How long whoever holds a lease of these schedules may be silent. */
export const LEASE_SECONDS = 1;

/** What a call may take before whoever makes it gives up: some of the provider's steps take longer. */
export const CALL_TIMEOUT_MS = 600;

export type Disturbance =
  | { readonly what: 'kill client' | 'kill client for good' | 'twin' | 'twin of its own store'; readonly atMs: number }
  | {
      readonly what: 'pause client' | 'cut client' | 'pause api' | 'cut database';
      readonly atMs: number;
      readonly forMs: number;
    }
  | { readonly what: 'kill api'; readonly atMs: number }
  | { readonly what: 'kill worker'; readonly atMs: number; readonly worker: number }
  | { readonly what: 'pause worker'; readonly atMs: number; readonly forMs: number; readonly worker: number };

/** One key, what the provider does at each arrival of it, and what happens to all who work on it. */
export interface Schedule {
  readonly number: number;
  readonly execution: 'caller' | 'dispatched';
  /** Whether the provider acts once for a key; if not, the action says `onExpiredLease: unknown`. */
  readonly knowsKeys: boolean;
  /** Whether the provider says no in the end; then it never acts. */
  readonly refuses: boolean;
  readonly script: readonly Step[];
  readonly client: {
    readonly startMs: number;
    /** For one exchange with the service. */
    readonly timeoutMs: number;
    /** When the client's own caller loses patience; null if never. */
    readonly abortMs: number | null;
    readonly beforeCallMs: number;
    readonly afterCallMs: number;
  };
  readonly disturbances: readonly Disturbance[];
}

const MOST_UNWELL_STEPS = 3;
const MOST_DISTURBANCES = 4;
/** The longest that one pause lasts: well over a lease, so that somebody else has the time to take over and be under way. */
const LONGEST_PAUSE_MS = 2_600;

/** The nth schedule of a seed: the same at every run, also alone. */
export function scheduleOf(seed: number, number: number): Schedule {
  const random = seeded(seed * 100_003 + number);
  // The first numbers of neighbouring seeds resemble one another.
  for (let n = 0; n < 8; n += 1) random();
  const between = (least: number, most: number): number => Math.floor(least + random() * (most - least));
  const among = <T>(...choices: readonly T[]): T => {
    const choice = choices[between(0, choices.length)];
    if (choice === undefined) throw new RangeError('There is nothing to choose from');
    return choice;
  };
  const chance = (share: number): boolean => random() < share;

  const execution = among('caller', 'dispatched');
  const refuses = chance(0.12);
  const unwell = (): Step => {
    const waitMs = between(200, 1_500);
    const gone = { acts: false, drop: true };
    const busy = { status: 429, headers: { 'retry-after': among('0', '1') } };
    const down = { status: 503, waitMs: between(0, 200) };
    if (refuses) return among<Step>(gone, busy, down, { ...down, waitMs });
    return among<Step>(
      gone,
      busy,
      down,
      { drop: true, waitMs: between(0, 300) },
      { status: 500, acts: true, waitMs: between(0, 300) },
      { waitMs },
      { waitBeforeMs: waitMs },
    );
  };
  const disturbance = (): Disturbance[] => {
    // Most of what can go wrong is over after two seconds; early instants are worth more.
    const atMs = Math.floor(random() * random() * 3_000);
    const forMs = between(LEASE_SECONDS * 1_200, LONGEST_PAUSE_MS);
    const cutMs = between(50, 500);
    const worker = between(0, 3);
    if (chance(0.06)) {
      return among<Disturbance[]>(
        [{ what: 'kill api', atMs }],
        [{ what: 'pause api', atMs, forMs }],
        [{ what: 'cut database', atMs, forMs: cutMs }],
      );
    }
    if (execution === 'dispatched' && chance(0.5)) {
      return among<Disturbance[]>(
        [{ what: 'kill worker', atMs, worker }],
        [{ what: 'pause worker', atMs, forMs, worker }],
      );
    }
    const twin = among('twin', 'twin of its own store', 'twin of its own store');
    return among<Disturbance[]>(
      [{ what: among('kill client', 'kill client for good'), atMs }],
      // Whoever is to lose a lease needs somebody who takes it over.
      [
        { what: 'pause client', atMs, forMs },
        { what: twin, atMs: atMs + between(0, forMs) },
      ],
      [{ what: 'cut client', atMs, forMs: cutMs }],
      [{ what: twin, atMs }],
    );
  };
  const disturbances = Array.from({ length: between(1, MOST_DISTURBANCES + 1) }, disturbance).flat();
  // Some are left alone by everybody: then only the sweeper comes by.
  const leftAtMs = chance(0.2) ? between(100, 1_500) : null;
  const left = disturbances.filter(({ atMs }) => leftAtMs === null || atMs < leftAtMs);
  if (leftAtMs !== null) left.push({ what: 'kill client for good', atMs: leftAtMs });
  const wellWaitMs = between(0, 200);
  return {
    number,
    execution,
    knowsKeys: chance(0.5),
    refuses,
    script: [
      ...Array.from({ length: between(0, MOST_UNWELL_STEPS + 1) }, unwell),
      { waitMs: wellWaitMs, ...(refuses ? { status: 402 } : {}) },
    ],
    client: {
      startMs: between(0, 600),
      timeoutMs: among(200, 1_500, 1_500),
      abortMs: chance(0.1) ? between(300, 2_500) : null,
      beforeCallMs: chance(0.5) ? between(0, 800) : 0,
      afterCallMs: chance(0.5) ? between(0, 800) : 0,
    },
    disturbances: left.sort((a, b) => a.atMs - b.atMs),
  };
}
