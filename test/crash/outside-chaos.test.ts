import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { violations } from '../support/audit.js';
import { scheduleOf } from '../support/chaos-plan.js';
import { Play } from '../support/chaos-play.js';
import { setChaosStage, type ChaosStage } from '../support/chaos-stage.js';
import { atRest, ledToTheEnd, tally, timeline, wrongInTheEnd, wrongSoFar } from '../support/chaos-verdict.js';
import { IS_LONG, rounds } from '../support/rounds.js';

/** Both may be given by whoever wants to see one schedule again, or others than these. */
const SEED = Number(process.env['CHAOS_SEED'] ?? 1);
const ONLY = process.env['CHAOS_SCHEDULE'];

const SCHEDULES =
  ONLY === undefined ? Array.from({ length: rounds(300) }, (_, number) => number) : ONLY.split(',').map(Number);
/** So many share the stage at a time: what kills the service hits them all. */
const AT_ONCE = 15;

let stage: ChaosStage;
beforeAll(async () => {
  stage = await setChaosStage();
});
afterAll(() => stage?.close());

/** What went wrong in words, with all that is needed to see why; and how the keys stood before they were led to their end. */
async function playBatch(numbers: readonly number[]): Promise<{ reports: string[]; states: string[] }> {
  const plays = numbers.map((number) => new Play(stage, scheduleOf(SEED, number)));
  try {
    await Promise.all(plays.map((play) => play.disturbed()));
    await stage.calm();
    const states: string[] = [];
    const reports = await Promise.all(
      plays.map(async (play) => {
        const { one, wrong } = await atRest(stage, play);
        states.push(one?.status ?? 'never heard of');
        wrong.push(...(await wrongSoFar(stage, play)));
        // What is stuck is not led anywhere; as it stands it tells more.
        if (wrong.length === 0) wrong.push(...(await ledToTheEnd(stage, play)), ...(await wrongInTheEnd(stage, play)));
        const again = `CHAOS_SEED=${SEED} CHAOS_SCHEDULE=${play.schedule.number}`;
        const story = `${again}\n${JSON.stringify(play.schedule)}\n${await timeline(stage, play)}\n`;
        if (ONLY !== undefined) process.stdout.write(story);
        return wrong.length === 0 ? '' : `${wrong.join('; ')}\n${story}`;
      }),
    );
    return { reports: reports.filter(Boolean), states };
  } finally {
    for (const play of plays) play.close();
  }
}

test('over 300 random schedules of kills, pauses, cuts, twins and a bad provider: one effect at most, one entry, every outcome kept, no key stuck', async () => {
  const startedAt = performance.now();
  const states: string[] = [];
  for (let first = 0; first < SCHEDULES.length; first += AT_ONCE) {
    const batch = await playBatch(SCHEDULES.slice(first, first + AT_ONCE));
    states.push(...batch.states);
    if (batch.reports.length > 0) throw new Error(batch.reports.join('\n\n'));
  }
  expect(await violations(stage.database)).toEqual([]);
  const attempts = await stage.database.query<{ disposition: string }>('SELECT disposition FROM attempt');
  const met = tally(attempts.map(({ disposition }) => disposition));
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  const figures = { schedules: SCHEDULES.length, seconds, done: stage.counts, states: tally(states), attempts: met };
  process.stdout.write(`${JSON.stringify(figures)}\n`);
  // A run in which nobody lost a lease has shown nothing.
  if (IS_LONG) expect(met).toMatchObject({ reclaimed: expect.any(Number), lease_lost: expect.any(Number) });
});
