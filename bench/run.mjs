// What is measured, and how, is in README.md beside this file.
import { readSettings } from '#database';
import { CONNECTIONS, ratesOf, tableOf } from './report.mjs';
import { BATCH } from './requests.mjs';
import { benchSealing } from './sealing.mjs';
import { Stage } from './stage.mjs';

const USAGE = 'Usage: npm run bench [-- --quick] [--json]\n';

/** Short rounds of each scenario in turn, because a shared machine is faster in one minute than in the next. */
const FULL = { rounds: 9, seconds: 2, outsideSeconds: 1.5, warmUpSeconds: 4, budgetSeconds: Infinity };
/** A round that would not end within the budget is left out: a slow machine gets fewer, never none. */
const QUICK = { rounds: 2, seconds: 1.1, outsideSeconds: 0.4, warmUpSeconds: 1.7, budgetSeconds: 57 };

/** What is measured in turn. Leases are claimed and then completed: one turn, two scenarios. */
const TURNS = ['floor', 'created', 'floorBatch100', 'batch', 'replayed', 'refused', 'leases', 'dispatched'];
/** The turns of effects outside are shorter, so that they do not make a run much longer. */
const OUTSIDE = new Set(['leases', 'dispatched']);

/** As many as the busiest round: a process that has just begun is slow until its code has been compiled. */
const WARM_UP_IN_FLIGHT = 64;

const startedAt = performance.now();
const arguments_ = process.argv.slice(2);
const OPTIONS = ['--sealing', '--quick', '--json'];
const [isSealing, isQuick, isJson] = OPTIONS.map((option) => arguments_.includes(option));
const plan = isQuick ? QUICK : FULL;

const say = (text) => void process.stderr.write(`${text}\n`);

async function bench(stage) {
  const { poolSize } = readSettings({});
  say('Starting PostgreSQL and the service');
  const staged = await stage.begin(poolSize);
  await warmUp(staged);
  const rounds = await measureRounds(staged);
  const rates = ratesOf(rounds);
  const residentMegabytes = await staged.residentMegabytes();
  return isJson
    ? `${JSON.stringify({ rates, residentMegabytes })}\n`
    : tableOf({ rounds, rates, residentMegabytes, server: staged.server, poolSize, plan });
}

/** @returns what was measured, by scenario */
async function measure({ http, floor, service, caller, actions }, turn, inFlight, seconds) {
  switch (turn) {
    case 'floor':
      return { floor: await floor.run('measure', { caller, action: actions['bench.apply'], inFlight, seconds }) };
    case 'floorBatch100': {
      const job = { caller, action: actions['bench.apply'], inFlight, seconds, size: BATCH };
      return { floorBatch100: await floor.run('measure', job) };
    }
    case 'leases':
      return http.run('measureLeases', { service, inFlight, seconds });
    default:
      return http.run('measure', { service, scenario: turn, inFlight, seconds });
  }
}

async function warmUp(staged) {
  say('Warming up');
  await staged.http.run('prepare', staged.service);
  for (const turn of TURNS)
    await measure(staged, turn, WARM_UP_IN_FLIGHT, OUTSIDE.has(turn) ? plan.outsideSeconds : plan.warmUpSeconds);
}

/** Every other round runs backwards, so that no turn always comes first, or after the same one. */
async function measureRounds(staged) {
  const cells = CONNECTIONS.flatMap((inFlight) => TURNS.map((turn) => ({ turn, inFlight })));
  const results = [];
  for (let round = 1; round <= plan.rounds; round++) {
    const roundStartedAt = performance.now();
    say(`Round ${round} of ${plan.rounds}`);
    for (const { turn, inFlight } of round % 2 === 1 ? cells : cells.toReversed()) {
      const seconds = OUTSIDE.has(turn) ? plan.outsideSeconds : plan.seconds;
      const measured = await measure(staged, turn, inFlight, seconds);
      for (const [scenario, result] of Object.entries(measured)) results.push({ round, scenario, inFlight, ...result });
    }
    const [took, spent] = [performance.now() - roundStartedAt, performance.now() - startedAt];
    if (spent + took > plan.budgetSeconds * 1000) break;
  }
  return results;
}

const unknown = arguments_.filter((argument) => !OPTIONS.includes(argument));
if (unknown.length > 0) {
  say(`There is no option ${unknown.join(' ')}\n${USAGE}`);
  process.exit(2);
}

const stages = [];
/** All of them, whatever fails with one of them. */
const endAll = async () => {
  const ends = await Promise.allSettled(stages.map((stage) => stage.end()));
  const failures = ends.filter(({ status }) => status === 'rejected').map(({ reason }) => reason);
  if (failures.length > 0) throw new AggregateError(failures, 'Not everything could be cleaned up');
};
function newStage() {
  const stage = new Stage();
  stages.push(stage);
  return stage;
}
let interruption = 0;
for (const [signal, number] of [
  ['SIGINT', 2],
  ['SIGTERM', 15],
  ['SIGHUP', 1],
]) {
  process.on(signal, () => {
    interruption ||= 128 + number;
    void endAll()
      .catch(say)
      .finally(() => process.exit(interruption));
  });
}

try {
  const { poolSize } = readSettings({});
  const begin = (settings) => newStage().begin(poolSize, settings);
  const output = isSealing ? await benchSealing({ begin, isQuick, isJson, say }) : await bench(newStage());
  await endAll();
  process.stdout.write(output);
} catch (error) {
  await endAll().catch(say);
  if (interruption === 0) say(error instanceof Error ? error.stack : String(error));
  process.exitCode = interruption || 1;
}
