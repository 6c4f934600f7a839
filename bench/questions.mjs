// Asks a running service everything that an auditor may ask in lists and counts, and says how long it took: see README.md.
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

const USAGE = `Usage: node bench/questions.mjs [--samples N] [--rounds N] [--only <part>] [--pid <of the service>] [--seed N] [--json] <url> <auditor's token>
Parts: decisions, attempts, counts, pairs-of-groups, exports\n`;

const ORDERS = ['asc', 'desc'];
/** A filter by time takes what was recorded so long before and after a decision. */
const AROUND_MS = 45 * 86_400_000;
const WORST = 10;
const MEMORY_EVERY_MS = 250;
/** What a page or a count says beside its filters. */
const NO_FILTERS = new Set(['limit', 'order', 'cursor', 'groupBy', 'format']);

const say = (text) => void process.stderr.write(`${text}\n`);
const rounded = (number, digits = 0) => Number(number.toFixed(digits));

/** The same at every run. */
function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

class Service {
  constructor(url, token) {
    this.url = url.replace(/\/$/, '');
    this.headers = { authorization: `Bearer ${token}` };
  }

  async open(path, query = {}) {
    const answer = await fetch(`${this.url}${path}?${new URLSearchParams(query)}`, { headers: this.headers });
    if (answer.status !== 200)
      throw new Error(`${path} ${JSON.stringify(query)}: ${answer.status} ${await answer.text()}`);
    return answer;
  }

  async get(path, query) {
    return (await this.open(path, query)).json();
  }

  /** From the request to the last byte of the answer. */
  async timed(path, query) {
    const from = performance.now();
    const text = await (await this.open(path, query)).text();
    return { ms: performance.now() - from, text };
  }

  /** What the service says of a route's parameters: a new filter is asked about without a word here. */
  async parametersOf(path) {
    this.document ??= await (await fetch(`${this.url}/openapi.json`)).json();
    return this.document.paths[path].get.parameters.filter((parameter) => parameter.in === 'query');
  }

  async filtersOf(path) {
    return (await this.parametersOf(path)).map(({ name }) => name).filter((name) => !NO_FILTERS.has(name));
  }

  async groupsOf(path) {
    const { schema } = (await this.parametersOf(path)).find(({ name }) => name === 'groupBy');
    return [...new Set(schema.pattern.match(/\w+/g))];
  }
}

/** The first or the last time at which something was recorded. */
async function endOf(service, order) {
  const { items } = await service.get('/v1/decisions', { order, limit: '1', state: 'completed' });
  if (items.length === 0) throw new Error('There are no decisions');
  return Date.parse(items[0].recordedAt);
}

/** The values of a decision, and of one arrival for it, for each filter that it has a value for. */
async function valuesOf(service, decisionId, random) {
  const decision = await service.get(`/v1/decisions/${decisionId}`);
  const { items: attempts } = await service.get('/v1/attempts', { decisionId });
  const attempt = attempts[Math.floor(random() * attempts.length)];
  const at = Date.parse(decision.recordedAt ?? decision.receivedAt);
  const values = {
    ...decision,
    subjectType: decision.subject.type,
    subjectId: decision.subject.id,
    modelId: decision.model.id,
    modelVersion: decision.model.version,
    outcome: decision.outcome?.status,
    reason: decision.outcome?.reason,
    downstreamKey: decision.downstreamKeys.uuid4 ?? decision.downstreamKeys.hex40,
    stepId: attempt.evidence?.stepId,
    runId: attempt.evidence?.runId,
    credentialId: attempt.credentialId,
    disposition: attempt.disposition,
    recordedFrom: new Date(at - AROUND_MS).toISOString(),
    recordedTo: new Date(at + AROUND_MS).toISOString(),
  };
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) =>
      typeof value === 'string' || typeof value === 'number' ? [[name, String(value)]] : [],
    ),
  );
}

/** Decisions from all along the time that the ledger covers; what one has no value for, it has from another. */
async function samplesOf(service, count, names, random) {
  const [from, to] = [await endOf(service, 'asc'), await endOf(service, 'desc')];
  const samples = [];
  for (let n = 0; n < count; n += 1) {
    const at = new Date(from + ((to - from) * (n + random())) / count).toISOString();
    const { items } = await service.get('/v1/decisions', { recordedFrom: at, limit: '100' });
    samples.push(await valuesOf(service, items[Math.floor(random() * items.length)].decisionId, random));
  }
  const refused = await service.get('/v1/decisions', { outcome: 'refused', limit: '500' });
  const outside = await service.get('/v1/attempts', { disposition: 'completed', limit: '100' });
  const spare = [refused.items.at(-1)?.decisionId, outside.items.at(-1)?.decisionId].filter(Boolean);
  const others = await Promise.all(spare.map((decisionId) => valuesOf(service, decisionId, random)));
  return samples.map((sample) => {
    const whole = names.map((name) => [name, [sample, ...others, ...samples].find((o) => name in o)?.[name]]);
    return Object.fromEntries(whole.filter(([, value]) => value !== undefined));
  });
}

/** Each name alone, and with each other name. */
const pairsOf = (names) => names.flatMap((a, i) => names.slice(i).map((b) => [...new Set([a, b])]));

/** Questions with one or two filters: with the values of one decision, and with those of two that have little in common. */
function* questionsOf(names, samples) {
  for (const [n, sample] of samples.entries()) {
    const other = samples[(n + Math.ceil(samples.length / 2)) % samples.length];
    for (const pair of pairsOf(names)) {
      if (!pair.every((name) => name in sample && name in other)) continue;
      const own = Object.fromEntries(pair.map((name) => [name, sample[name]]));
      const mixed = { ...own, [pair.at(-1)]: other[pair.at(-1)] };
      for (const order of ORDERS) {
        yield { kind: 'of one decision', query: { ...own, order } };
        if (pair.length > 1) yield { kind: 'of two decisions', query: { ...mixed, order } };
      }
    }
  }
}

function statisticsOf(times) {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share) => rounded(sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)], 1);
  return { n: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) };
}

/** Each question several times: the first time fetches what lies on disk, and does not count. */
async function askLists(service, path, { samples, rounds, random }) {
  const names = await service.filtersOf(path);
  const taken = await samplesOf(service, samples, names, random);
  const asked = [];
  for (const { kind, query } of questionsOf(names, taken)) {
    await service.timed(path, query);
    const times = [];
    for (let round = 0; round < rounds; round += 1) times.push((await service.timed(path, query)).ms);
    asked.push({ kind, query, times });
    if (asked.length % 500 === 0) say(`${path}: ${asked.length} questions`);
  }
  return [...new Set(asked.map(({ kind }) => kind))].map((kind) => {
    const those = asked.filter((one) => one.kind === kind);
    const worst = those
      .map(({ query, times }) => ({ ms: rounded(Math.max(...times), 1), query }))
      .toSorted((a, b) => b.ms - a.ms)
      .slice(0, WORST);
    return { list: `${path} ${kind}`, ...statisticsOf(those.flatMap(({ times }) => times)), worst };
  });
}

/** The last whole quarter of a year that the ledger covers. */
async function quarterOf(service) {
  const last = new Date(await endOf(service, 'desc'));
  const begin = (month) => new Date(Date.UTC(last.getUTCFullYear(), month, 1)).toISOString();
  const month = Math.floor(last.getUTCMonth() / 3) * 3;
  return { recordedFrom: begin(month - 3), recordedTo: begin(month) };
}

async function askCounts(service, path, { rounds }, isOfPairs) {
  const quarter = await quarterOf(service);
  const names = await service.groupsOf(path);
  const groups = isOfPairs ? pairsOf(names).filter(({ length }) => length === 2) : [[], ...names.map((name) => [name])];
  const asked = [];
  for (const group of groups) {
    const groupBy = group.join(',');
    const query = { ...quarter, ...(groupBy === '' ? {} : { groupBy }) };
    await service.timed(path, query);
    const times = [];
    for (let round = 0; round < rounds; round += 1) times.push((await service.timed(path, query)).ms);
    asked.push({ groupBy, times });
  }
  const { n, ...statistics } = statisticsOf(asked.flatMap(({ times }) => times));
  return {
    count: path,
    quarter,
    n,
    ...statistics,
    each: asked
      .map(({ groupBy, times }) => ({ groupBy, ms: rounded(statisticsOf(times).p50) }))
      .toSorted((a, b) => b.ms - a.ms),
  };
}

/** Of Linux: the memory that a process holds. */
const residentMegabytes = (pid) =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;

async function askExport(service, format, pid) {
  const memory = [];
  const look = () => void memory.push(residentMegabytes(pid));
  const looking = pid === undefined ? undefined : setInterval(look, MEMORY_EVERY_MS);
  try {
    const from = performance.now();
    const { body } = await service.open('/v1/exports/decisions', { format });
    let bytes = 0;
    let tail = Buffer.alloc(0);
    for await (const chunk of body) {
      bytes += chunk.length;
      tail = Buffer.concat([tail, chunk]).subarray(-4_096);
    }
    const rows = Number(/"trailer":\{"rows":(\d+)/.exec(tail.toString())?.[1]);
    const seconds = (performance.now() - from) / 1_000;
    const tenths = Array.from({ length: 10 }, (_, n) =>
      rounded(
        Math.max(...memory.slice(Math.floor((n * memory.length) / 10), Math.ceil(((n + 1) * memory.length) / 10))),
      ),
    );
    return {
      export: format,
      rows,
      megabytes: rounded(bytes / 1e6),
      seconds: rounded(seconds, 1),
      ...(pid === undefined ? {} : { mebibytesHeldInEachTenth: tenths }),
    };
  } finally {
    clearInterval(looking);
  }
}

const PARTS = {
  decisions: (service, how) => askLists(service, '/v1/decisions', how),
  attempts: (service, how) => askLists(service, '/v1/attempts', how),
  counts: async (service, how) => [
    await askCounts(service, '/v1/decisions/count', how, false),
    await askCounts(service, '/v1/attempts/count', how, false),
  ],
  'pairs-of-groups': async (service, how) => [
    await askCounts(service, '/v1/decisions/count', how, true),
    await askCounts(service, '/v1/attempts/count', how, true),
  ],
  exports: async (service, { pid }) => [await askExport(service, 'ndjson', pid), await askExport(service, 'csv', pid)],
};

function linesOf(result) {
  if ('export' in result) return [JSON.stringify(result)];
  const { p50, p95, p99, max, n } = result;
  return [
    `${(result.list ?? result.count).padEnd(36)} n ${n}   p50 ${p50}   p95 ${p95}   p99 ${p99}   max ${max} ms`,
    ...(result.worst ?? []).map(({ ms, query }) => `    ${String(ms).padStart(8)}  ${new URLSearchParams(query)}`),
    ...(result.each ?? [])
      .slice(0, 20)
      .map(({ groupBy, ms }) => `    ${String(ms).padStart(8)}  ${groupBy || '(no group)'}`),
  ];
}

async function main() {
  const { values, positionals } = parseArgs({
    options: {
      samples: { type: 'string', default: '6' },
      rounds: { type: 'string', default: '3' },
      seed: { type: 'string', default: '1' },
      only: { type: 'string', multiple: true, default: Object.keys(PARTS) },
      pid: { type: 'string' },
      json: { type: 'boolean', default: false },
    },
    allowPositionals: true,
  });
  const [url, token] = positionals;
  if (token === undefined || !values.only.every((part) => part in PARTS)) throw new Error(USAGE);
  const how = {
    samples: Number(values.samples),
    rounds: Number(values.rounds),
    pid: values.pid,
    random: randomOf(Number(values.seed)),
  };
  const service = new Service(url, token);
  for (const part of values.only) {
    for (const result of await PARTS[part](service, how))
      process.stdout.write(values.json ? `${JSON.stringify(result)}\n` : `${linesOf(result).join('\n')}\n`);
  }
}

await main().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exitCode = 1;
});
