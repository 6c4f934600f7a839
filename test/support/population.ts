import { Client, inputs } from './client.js';
import type { Random } from './bad-case.js';
import { claim, type Claim } from './leases.js';
import { TRANSACTIONAL, type Stage } from './stage.js';

/** What the tenant of a population decides. */
export const POPULATION_ACTIONS = {
  'note.add': TRANSACTIONAL,
  'note.once': { ...TRANSACTIONAL, sameContent: 'refuse' },
  'case.close': { ...TRANSACTIONAL, uniqueness: 'subject' },
  'call.out': { execution: 'caller', leaseSeconds: 3600 },
};

/** Text that means something to SQL, to LIKE, to JSON, to a URL or to a spreadsheet. */
export const ODD_TEXTS = [
  `O'Brien`,
  `50%_"x"`,
  'back\\slash',
  '%',
  '_',
  `' OR '1'='1`,
  'Zoë 🦊',
  'a&b=c+d #e',
  '\u2028\t\u0001',
  '=1+1',
] as const;

/** A decision that no other is like: its number is in its params. */
export function someDecision(random: Random, n: number, action: string): Record<string, unknown> {
  const period = random.pick(null, null, '2026-Q3', '2026-11', '2025');
  return {
    inputs: inputs({
      action,
      subject: {
        type: random.pick('case', 'order', ...ODD_TEXTS.slice(0, 2)),
        id: random.pick('C-1', 'C-2', 'c-1', ...ODD_TEXTS),
      },
      params: { n, ...(period === null ? {} : { reportingPeriod: period }) },
      model: { id: random.pick('m-1', 'm-2'), version: random.pick('1', '2') },
      promptTemplateSha256: random.pick('a', 'b').repeat(64),
      retrievalSnapshotId: random.pick('rs-1', 'rs-2', ODD_TEXTS[3]),
      policyVersion: random.pick('pol-1', 'pol-2', ODD_TEXTS[4]),
    }),
    ...(random.whole(0, 1) === 0 ? {} : { note: random.pick(...ODD_TEXTS) }),
    ...evidence(random),
  };
}

export const evidence = (random: Random): Record<string, unknown> =>
  random.whole(0, 3) === 0
    ? {}
    : {
        evidence: {
          stepId: random.pick('s-1', 's-2', ODD_TEXTS[1]),
          runId: random.pick('r-1', 'r-2'),
          attempt: random.whole(1, 5),
        },
      };

/** A population that has something of everything, with some decisions still in flight. */
export interface Population {
  readonly inFlight: Claim[];
  /** Another credential that has sent attempts. */
  readonly second: Client;
}

export async function populate(stage: Stage, random: Random, size: number): Promise<Population> {
  const { orchestrator, admin } = stage;
  const issued = await admin.post('/v1/credentials', { role: 'orchestrator', name: 'second' });
  const second = new Client(stage.service.url, issued.body.token);
  let n = 0;
  const sent: { body: Record<string, unknown>; key: string }[] = [];
  while (n < size) {
    // One statement records a batch, so all of it carries one time.
    const batch = Array.from({ length: random.whole(1, 20) }, () => {
      n += 1;
      return {
        body: someDecision(random, n, random.pick('note.add', 'note.add', 'note.once', 'case.close')),
        key: `key-${n}`,
      };
    });
    sent.push(...batch);
    await random.pick(orchestrator, second).post('/v1/decisions/batch', {
      decisions: batch.map(({ body, key }) => ({ ...body, idempotencyKey: key })),
    });
    if (n > size / 2) await admin.put('/v1/actions/note.add', { ...TRANSACTIONAL, responseRetentionDays: 7 });
  }
  for (let retry = 0; retry < size / 3; retry += 1) {
    const { body, key } = random.pick(...sent);
    const by = random.pick(orchestrator, second);
    // The same again, another note under the key, or the same content under another key.
    await random.pick(
      () => by.decide({ ...body, ...evidence(random) }, key),
      () => by.decide({ ...body, note: 'another' }, key),
      () => by.decide({ ...body, ...evidence(random) }, `${key}-again-${retry}`),
    )();
  }
  const inFlight: Claim[] = [];
  const ends = ['in_flight', 'applied', 'refused', 'failed', 'unknown', 'retried', 'overtaken'] as const;
  for (let call = 0; call < size / 4; call += 1) {
    const body = someDecision(random, size + call, 'call.out');
    const held = await claim(random.pick(orchestrator, second), body, `call-${call}`);
    const end = ends[call % ends.length];
    if (end === 'in_flight') inFlight.push(held);
    if (end === 'applied')
      await held.complete({
        status: 'applied',
        result: { n: call },
        externalRef: random.pick('ref-1', `ref-${call}`, ODD_TEXTS[0]),
      });
    if (end === 'refused')
      await held.complete({ status: 'refused', reason: random.pick('limit', 'closed', ODD_TEXTS[2]) });
    if (end === 'failed' || end === 'retried' || end === 'overtaken') await held.fail('none');
    if (end === 'unknown') await held.fail('unknown');
    if (end === 'retried') inFlight.push(await claim(orchestrator, body, `call-${call}`));
    // Another key's decision carries the content by the time that this one is tried again.
    if (end === 'overtaken') {
      const other = await claim(second, body, `call-${call}-other`);
      await other.complete({ status: 'applied', result: {} });
      await orchestrator.decide(body, `call-${call}`);
    }
  }
  return { inFlight, second };
}
