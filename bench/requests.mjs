/**
 * The actions of the bench. `bench.once` allows one applied decision a subject; the rest of the rules are the defaults, save
 * the lease: no round may be so long that what it claimed runs out before it is completed.
 */
export const actions = (providerUrl) => ({
  'bench.apply': { execution: 'transactional' },
  'bench.once': { execution: 'transactional', uniqueness: 'subject' },
  'bench.call': { execution: 'caller', leaseSeconds: 600 },
  'bench.dispatch': { execution: 'dispatched', dispatch: { url: providerUrl } },
});

/** So many recorded requests are sent again, in turn. */
export const REPLAY_SET = 500;
/** So many subjects are taken, and asked for again in turn. */
export const TAKEN_SUBJECTS = 100;

/** So many decisions a batch has. */
export const BATCH = 100;

/** Ids have one width, so that every body of a scenario has the same length. */
const width = (number) => String(number).padStart(9, '0');

/**
 * The body of a request. Two different `serial`s are two different contents; the rest is what an agent would send: some
 * params, a model, a snapshot, a policy, a note and the evidence of one try.
 */
function body({ action, subject, serial }) {
  return JSON.stringify({
    inputs: {
      subject: { type: 'case', id: subject },
      action,
      params: {
        amount: '149.90',
        currency: 'EUR',
        order: `ord-${serial}`,
        reason: 'parcel-lost',
        lines: [
          { sku: 'A-1009', quantity: 1 },
          { sku: 'B-2210', quantity: 2 },
        ],
      },
      model: { id: 'claims-large', version: '2026-09-01' },
      promptTemplateSha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
      retrievalSnapshotId: 'rs-2026-11-30-14',
      policyVersion: 'refunds-7',
    },
    note: 'refund of a lost parcel',
    evidence: { stepId: `step-${serial}`, runId: 'run-0081', attempt: 1, toolCallId: 'call_9f3a' },
  });
}

/** Content that nobody has sent before; `source` keeps the senders of one run apart. */
export function freshBody(source, number) {
  const serial = `${source}${width(number)}`;
  return body({ action: 'bench.apply', subject: `C-${serial}`, serial });
}

/** A batch of content that nobody has sent before. */
export function batchBody(number) {
  const bodies = Array.from({ length: BATCH }, (_, i) => freshBody('b', number * BATCH + i));
  return `{"decisions":[${bodies.join(',')}]}`;
}

/** New content whose effect is outside: the caller's to run, or the worker's. */
export function outsideBody(action, number) {
  const serial = `o${width(number)}`;
  return body({ action, subject: `C-${serial}`, serial });
}

/** What a caller reports whose effect is done. */
export function completionBody(leaseToken, number) {
  const externalRef = `re_${width(number)}`;
  return JSON.stringify({ leaseToken, outcome: { status: 'applied', result: { refund: externalRef }, externalRef } });
}

/** One of the requests that are recorded once and then sent again. */
export function recordedBody(number) {
  const serial = `r${width(number % REPLAY_SET)}`;
  return body({ action: 'bench.apply', subject: `C-${serial}`, serial });
}

/** The request that takes a subject. */
export function takingBody(number) {
  const serial = `t${width(number)}`;
  return body({ action: 'bench.once', subject: `C-${serial}`, serial });
}

/** New content, so a new key, on a subject that is taken: each is a refusal of its own, and recorded. */
export function refusedBody(number) {
  return body({ action: 'bench.once', subject: `C-t${width(number % TAKEN_SUBJECTS)}`, serial: `n${width(number)}` });
}
