import { arch, cpus, platform, totalmem } from 'node:os';

const SCENARIOS = [
  'floor',
  'created',
  'floorBatch100',
  'batch',
  'replayed',
  'refused',
  'claimed',
  'completed',
  'dispatched',
];
export const CONNECTIONS = [1, 16, 64];

const MEASURES = ['perSecond', 'p50Ms', 'p99Ms'];

export function median(numbers) {
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export const rounded = (number, digits) => Math.round(number * 10 ** digits) / 10 ** digits;

/** The median of each measure over the rounds of each cell. `rounds`: `{ scenario, inFlight, perSecond, p50Ms, p99Ms }`. */
export function ratesOf(rounds) {
  const cell = (scenario, inFlight) => {
    const own = rounds.filter((round) => round.scenario === scenario && round.inFlight === inFlight);
    const values = MEASURES.map((name) => [
      name,
      rounded(median(own.map((round) => round[name])), name === 'perSecond' ? 1 : 3),
    ]);
    return Object.fromEntries(values);
  };
  const row = (scenario) => Object.fromEntries(CONNECTIONS.map((inFlight) => [inFlight, cell(scenario, inFlight)]));
  return Object.fromEntries(SCENARIOS.map((scenario) => [scenario, row(scenario)]));
}

/** For each number of connections: the median, over the rounds, of what a scenario reached of the floor beside it. */
function ratioOf(rounds, scenario, inFlight) {
  const rate = (name, round) => rounds.find((r) => r.scenario === name && r.inFlight === inFlight && r.round === round);
  const pairs = new Set(rounds.map(({ round }) => round));
  return median([...pairs].map((round) => rate(scenario, round).perSecond / rate('floor', round).perSecond));
}

/** Where it ran, without which a rate says nothing. */
export const machineLines = (server) => [
  `${cpus()[0]?.model ?? 'unknown processor'}, ${cpus().length} cores, ${rounded(totalmem() / 2 ** 30, 0)} GiB; ${platform()} ${arch()}`,
  `Node ${process.versions.node}; PostgreSQL ${server.version} (fsync ${server.fsync}, synchronous_commit ${server.synchronousCommit})`,
];

export function tableOf({ rounds, rates, residentMegabytes, server, poolSize, plan }) {
  const line = (cells) =>
    cells
      .map((text, i) => (i < 1 ? text.padEnd(14) : text.padStart(12)))
      .join('')
      .trimEnd();
  const lines = [
    ...machineLines(server),
    `Medians of ${new Set(rounds.map(({ round }) => round)).size} rounds of ${plan.seconds} s (effects outside: ${plan.outsideSeconds} s), in turn`,
    '',
    line(['', 'in flight', 'per second', 'p50 ms', 'p99 ms', 'of floor']),
  ];
  for (const scenario of SCENARIOS) {
    for (const inFlight of CONNECTIONS) {
      const { perSecond, p50Ms, p99Ms } = rates[scenario][inFlight];
      const ratio = scenario === 'floor' ? '' : ratioOf(rounds, scenario, inFlight).toFixed(2);
      lines.push(line([scenario, String(inFlight), perSecond.toFixed(0), p50Ms.toFixed(2), p99Ms.toFixed(2), ratio]));
    }
  }
  lines.push(
    '',
    `floor: bare pg sends the statement and the rows of the service for new decisions. Service and floor each have a pool`,
    `of ${poolSize} connections to the database; "in flight" is HTTP connections there, queries handed to the pool here.`,
    `Service: one process, default settings, log at level info into a file. It shares the cores with the database and`,
    `with the process that sends; the floor has only the database beside it.`,
    `floorBatch100, batch: 100 decisions a statement, 100 a request; the rate is of decisions, the latency of a hundred.`,
    `claimed, completed: an effect of the caller's, its two requests. dispatched: from the request to the recorded outcome,`,
    `with the worker's call to another process in between.`,
    '',
    `Resident memory of the service at the end: ${residentMegabytes} MiB`,
    '',
  );
  return lines.join('\n');
}
