import type { Client } from './client.js';
import { Chronicle, type Decided, type Plan } from './chronicle.js';
import { until, type Stage } from './stage.js';

const MODELS = [
  { id: 'm-1', version: '2026-09-01' },
  { id: 'm-1', version: '2026-10-01' },
  { id: 'm-2', version: '2026-09-01' },
] as const;
const [FIRST_MODEL, , LAST_MODEL] = MODELS;

const BASIS = { model: FIRST_MODEL, prompt: 'template one', snapshot: 'rs-0', policy: 'pol-7' };
const REFUNDS = { execution: 'transactional', responseRetentionDays: 90 };
const PAYOUTS = { execution: 'caller', leaseSeconds: 600 };

const refund = (subject: string, amount: string, changes: Partial<Plan> = {}): Plan => ({
  ...BASIS,
  action: 'refund.create',
  subject,
  params: { amount, currency: 'EUR' },
  ...changes,
});
const report = (subject: string, reportingPeriod: string, changes: Partial<Plan> = {}): Plan => ({
  ...BASIS,
  action: 'sar.file',
  subject,
  params: { reportingPeriod },
  ...changes,
});
const payout = (subject: string, action = 'payout.send'): Plan => ({
  ...BASIS,
  action,
  subject,
  params: { amount: `1${subject.slice(2)}.00`, currency: 'EUR' },
});

/** A quarter of an agent's life, with what came before it and after it, and an outage on one of its days. */
export async function liveThroughAQuarter(stage: Stage, other: Client): Promise<Chronicle> {
  const chronicle = new Chronicle(stage);
  await chronicle.rules('refund.create', REFUNDS);
  await chronicle.rules('sar.file', { execution: 'transactional', uniqueness: 'subject-and-period' });
  await chronicle.rules('payout.send', PAYOUTS);
  await chronicle.rules('payout.blind', { execution: 'caller', leaseSeconds: 1, onExpiredLease: 'unknown' });

  await chronicle.enter('before');
  for (const n of [0, 1, 2]) await chronicle.send(refund(`B-${n}`, '5.00'), 'created', { run: 'run-0' });

  await chronicle.enter('quarter');
  const refunds = await issueRefunds(chronicle, other);
  await refuseRefunds(chronicle);
  await fileReports(chronicle, other);
  await misuseKeys(chronicle, refunds, other);
  const late = await payOut(chronicle, stage);

  await chronicle.enter('outage');
  for (const plan of refunds.slice(0, 6))
    for (const step of ['a', 'b', 'c']) await chronicle.send(plan, 'replayed', { run: 'run-outage', step });
  for (const n of [0, 1]) {
    await chronicle.send(refund(`O-${n}`, '7.00'), 'created', { run: 'run-outage' });
    for (const step of ['a', 'b'])
      await chronicle.send(refund(`O-${n}`, '7.00'), 'replayed', { run: 'run-outage', step });
  }
  await chronicle.send(payout('P-7'), 'unknown');
  await chronicle.complete(late, 're_10');

  await chronicle.enter('after');
  for (const n of [0, 1]) await chronicle.send(refund(`A-${n}`, '5.00'), 'created', { run: 'run-4' });
  await chronicle.enter('end');
  return chronicle;
}

/** Twelve refunds under every basis there is, in three versions of the rules, each repeated up to twice. */
async function issueRefunds(chronicle: Chronicle, other: Client): Promise<Plan[]> {
  const plans = Array.from({ length: 12 }, (_, n) =>
    refund(`C-${n % 5}`, `${n + 1}.50`, {
      model: MODELS[n % 3] ?? FIRST_MODEL,
      prompt: n % 2 === 0 ? 'template one' : 'template two',
      snapshot: `rs-${n % 4}`,
      policy: n < 8 ? 'pol-7' : 'pol-8',
      ...(n % 2 === 0 ? {} : { key: `order-${n}`, note: 'parcel lost' }),
    }),
  );
  for (const [n, plan] of plans.entries()) {
    if (n === 5) await chronicle.rules('refund.create', { ...REFUNDS, responseRetentionDays: 30 });
    if (n === 9)
      await chronicle.rules('refund.create', {
        ...REFUNDS,
        responseRetentionDays: 30,
        sameContent: 'replay',
        leaseSeconds: 60,
      });
    await chronicle.send(plan, 'created', { run: `run-${n % 3}`, step: `step-${n}` });
    for (let again = 0; again < n % 3; again += 1)
      await chronicle.send(plan, 'replayed', { run: 'run-retry', step: `step-${n}-${again}`, by: other });
  }
  const together = Array.from({ length: 5 }, (_, n) => refund(`T-${n}`, '2.00', { key: `together-${n}` }));
  await chronicle.sendTogether(together, 'run-together');
  return plans;
}

async function refuseRefunds(chronicle: Chronicle): Promise<void> {
  const reason = 'exceeds-order-total';
  const plan = (n: number): Plan =>
    refund(`D-${n}`, '10.00', { params: { amount: '10.00', currency: 'EUR', orderTotal: '5.00' } });
  for (const n of [0, 1, 2]) await chronicle.send(plan(n), 'refused', { run: 'run-2', reason });
  await chronicle.send(plan(0), 'replayed', { run: 'run-2', step: 'step-again' });
}

async function fileReports(chronicle: Chronicle, other: Client): Promise<void> {
  const reason = 'duplicate-subject';
  for (const n of [1, 2, 3, 4]) await chronicle.send(report(`S-${n}`, '2026-Q3'), 'created', { run: 'run-3' });
  await chronicle.send(report('S-1', '2026-Q2'), 'created', { run: 'run-3' });
  await chronicle.send(report('S-1', '2026-Q3'), 'replayed', { run: 'run-3', step: 'step-again' });
  const second = report('S-2', '2026-Q3', { model: LAST_MODEL });
  await chronicle.send(second, 'refused', { run: 'run-9', step: 'step-9', by: other, reason });
  await chronicle.send(second, 'replayed', { run: 'run-9', step: 'step-10', by: other });
  await chronicle.send(report('S-3', '2026-Q3', { policy: 'pol-8' }), 'refused', {
    run: 'run-3',
    step: 'step-7',
    reason,
  });
}

async function misuseKeys(chronicle: Chronicle, refunds: readonly Plan[], other: Client): Promise<void> {
  const [first, , , fourth] = refunds;
  if (first === undefined || fourth === undefined) throw new Error('There are too few refunds');
  for (const step of ['step-20', 'step-21'])
    await chronicle.send(refund('C-1', '99.00', { key: 'order-1' }), 'mismatch', { run: 'run-m', step, by: other });
  await chronicle.send({ ...fourth, note: 'another note' }, 'mismatch', { run: 'run-m', step: 'step-22' });
  await chronicle.send({ ...first, key: 'a-new-key' }, 'same_content', { run: 'run-m', step: 'step-23', by: other });
}

/** Effects outside, in every state that they can be in; gives back one that is still in flight. */
async function payOut(chronicle: Chronicle, stage: Stage): Promise<Decided> {
  const held: Decided[] = [];
  for (let n = 0; n <= 10; n += 1)
    held.push(await chronicle.send(payout(`P-${n}`), 'created', { run: 'run-p', step: `pay-${n}` }));
  const [p0, p1, p2, p3, p4, p5, p6, p7, , p9, p10] = held;
  if (!p0 || !p1 || !p2 || !p3 || !p4 || !p5 || !p6 || !p7 || !p9 || !p10) throw new Error('There are too few payouts');
  await chronicle.renew(p0);
  for (const [n, one] of [p0, p1, p2, p3].entries()) await chronicle.complete(one, `re_${n}`);
  await chronicle.reportAsStranger(p2);
  await chronicle.complete(p3, 're_of_another', 'mismatch');
  await chronicle.refuse(p4, 'provider-declined');
  await chronicle.fail(p5, 'none');
  await chronicle.send(payout('P-5'), 'reclaimed', { run: 'run-p', step: 'pay-5-again' });
  await chronicle.complete(p5, 're_5');
  await chronicle.fail(p6, 'none');
  await chronicle.fail(p7, 'unknown');
  await chronicle.send(payout('P-8'), 'in_flight', { run: 'run-twin', step: 'twin' });
  await chronicle.fail(p9, 'unknown');
  await chronicle.resolve(p9, 're_9');

  // Its lease runs out, and nobody reports.
  const blind = await chronicle.send(payout('P-11', 'payout.blind'), 'created', { run: 'run-p', step: 'pay-11' });
  await until(
    () =>
      stage.database.count(`SELECT count(*) FROM idempotency_record WHERE status = 'unknown' AND decision_id = $1`, [
        blind.decisionId,
      ]),
    (found) => found === 1,
    30_000,
  );
  blind.state = 'unknown';
  return p10;
}
