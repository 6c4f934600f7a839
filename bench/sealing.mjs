// What sealing costs, and how long a decision waits for it. What is measured, and how, is in README.md beside this file.
import { machineLines, median, rounded } from './report.mjs';

const FULL = { rounds: 15, seconds: 2, latencySeconds: 30 };
const QUICK = { rounds: 4, seconds: 1.1, latencySeconds: 6 };

const IN_FLIGHT = 64;
/** Both must have compiled their code, and have had their tables analysed, before one is compared with the other. */
const WARM_UP_SECONDS = 6;
/** As long as no bench takes: the settings know no other "never" that leaves the rest of the worker alone. */
const NEVER_MS = 3_600_000;

/** So many decisions at a time wait for their receipts. */
const PROBES = 8;
/** As many connections record without a pause when it is measured under load: about half of what the service takes. */
const MODERATE = 4;

/**
 * Two services, each with a PostgreSQL of its own, which differ in one setting.
 *
 * @param begin gives what is running for settings
 * @returns the report as text
 */
export async function benchSealing({ begin, isQuick, isJson, say }) {
  const plan = isQuick ? QUICK : FULL;
  say('Starting two of PostgreSQL and the service');
  const on = await begin({});
  const off = await begin({ SEAL_INTERVAL_MS: String(NEVER_MS) });
  const stages = { on, off };
  const record = async ({ http, service }, seconds) =>
    (await http.run('measure', { service, scenario: 'created', inFlight: IN_FLIGHT, seconds })).created;

  say('Warming up');
  for (const stage of [on, off]) await record(stage, WARM_UP_SECONDS);
  const pairs = [];
  for (let round = 1; round <= plan.rounds; round++) {
    say(`Round ${round} of ${plan.rounds}`);
    const pair = {};
    // Every other round begins with the other, so that neither always comes after the other.
    for (const name of round % 2 === 1 ? ['on', 'off'] : ['off', 'on']) {
      pair[name] = await record(stages[name], plan.seconds);
      if (name === 'on') pair.lagMs = (await on.http.run('measureLag', { service: on.service })).lagMs;
    }
    pairs.push(pair);
  }
  say('Waiting for receipts');
  const wait = (beside) =>
    on.http.run('measureSealed', { service: on.service, probes: PROBES, beside, seconds: plan.latencySeconds });
  const latency = { idle: await wait(0), moderate: await wait(MODERATE) };
  const result = resultOf(pairs, latency);
  return isJson ? `${JSON.stringify({ sealing: result })}\n` : textOf(result, plan, on.server);
}

function resultOf(pairs, latency) {
  const rate = (name) => rounded(median(pairs.map((pair) => pair[name].perSecond)), 1);
  const ratios = pairs.map(({ on, off }) => on.perSecond / off.perSecond);
  const lags_ms = pairs.map(({ lagMs }) => lagMs);
  const millis = ({ perSecond, p50Ms, p99Ms, count }) => ({
    besidePerSecond: rounded(perSecond, 1),
    p50Ms: rounded(p50Ms, 1),
    p99Ms: rounded(p99Ms, 1),
    count,
  });
  return {
    ratio: rounded(median(ratios), 3),
    ratios: ratios.map((ratio) => rounded(ratio, 3)),
    perSecond: { on: rate('on'), off: rate('off') },
    lagMs: { median: rounded(median(lags_ms), 1), most: rounded(Math.max(...lags_ms), 1) },
    sealed: { idle: millis(latency.idle), moderate: millis(latency.moderate) },
  };
}

function textOf({ ratio, ratios, perSecond, lagMs, sealed }, plan, server) {
  const { idle, moderate } = sealed;
  const wait = (name, { p50Ms, p99Ms, count }) =>
    `${name.padEnd(44)}p50 ${p50Ms.toFixed(0).padStart(5)} ms   p99 ${p99Ms.toFixed(0).padStart(5)} ms   of ${count}`;
  return [
    ...machineLines(server),
    `${plan.rounds} pairs of ${plan.seconds} s, created, ${IN_FLIGHT} connections; two services, two databases, in turn`,
    '',
    `sealing on   ${perSecond.on.toFixed(0)} a second (median)`,
    `sealing off  ${perSecond.off.toFixed(0)} a second (median)`,
    `on / off     ${ratio.toFixed(3)} (median of the pairs, which are ${ratios.map((one) => one.toFixed(2)).join(' ')})`,
    '',
    'From the answer to a decision to its receipt:',
    wait('with no other load', idle),
    wait(`beside ${MODERATE} connections (${moderate.besidePerSecond.toFixed(0)} a second)`, moderate),
    `right after a round at ${IN_FLIGHT} connections`.padEnd(44) +
      `median ${lagMs.median.toFixed(0)} ms   most ${lagMs.most.toFixed(0)} ms`,
    '',
  ].join('\n');
}
