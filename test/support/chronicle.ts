import { createHash } from 'node:crypto';
import type { Client, Reply } from './client.js';
import type { Stage } from './stage.js';

/** What a test did, written down by itself as it did it: the answers are compared with this and with nothing else. */
export interface Decided {
  readonly decisionId: string;
  readonly key: string;
  readonly plan: Plan;
  readonly actionVersion: number;
  readonly receivedIn: string;
  state: 'in_flight' | 'completed' | 'failed' | 'unknown';
  outcome: 'applied' | 'refused' | null;
  reason: string | null;
  externalRef: string | null;
  recordedIn: string | null;
}

export interface Arrived {
  readonly decided: Decided;
  readonly key: string;
  readonly disposition: string;
  readonly won: boolean;
  readonly run: string | null;
  readonly step: string | null;
  readonly credentialId: string;
  readonly phase: string;
}

export interface Plan {
  readonly action: string;
  readonly subject: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly model: { readonly id: string; readonly version: string };
  readonly prompt: string;
  readonly snapshot: string;
  readonly policy: string;
  readonly key?: string;
  readonly note?: string;
}

export const promptSha256 = (template: string): string => createHash('sha256').update(template).digest('hex');
export const credentialIdOf = ({ token }: Client): string => token?.split('_')[1] ?? '';

export const inputsOf = (plan: Plan): Record<string, unknown> => ({
  subject: { type: 'case', id: plan.subject },
  action: plan.action,
  params: plan.params,
  model: plan.model,
  promptTemplateSha256: promptSha256(plan.prompt),
  retrievalSnapshotId: plan.snapshot,
  policyVersion: plan.policy,
});

const STATUSES: Readonly<Record<string, readonly number[]>> = {
  created: [201, 202],
  refused: [409],
  replayed: [201, 409],
  mismatch: [422],
  in_flight: [409],
  unknown: [409],
  same_content: [201],
  reclaimed: [202],
};

interface Sending {
  readonly run?: string;
  readonly step?: string;
  readonly by?: Client;
  /** The reason of a refusal. */
  readonly reason?: string;
}

/** A population that is made over HTTP, phase by phase, with everything in it written down. */
export class Chronicle {
  readonly decisions: Decided[] = [];
  readonly arrivals: Arrived[] = [];
  readonly versions: Record<string, number> = {};
  private readonly marks: Record<string, string> = {};
  private readonly tokens = new Map<string, string>();
  private phase = '';

  constructor(private readonly stage: Stage) {}

  /** From now on until the next phase. */
  async enter(phase: string): Promise<void> {
    const [row] = await this.stage.database.query<{ at: string }>(
      `SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at`,
    );
    this.marks[phase] = row?.at ?? '';
    this.phase = phase;
  }

  at(phase: string): string {
    return this.marks[phase] ?? '';
  }

  /** From the beginning of one phase to the beginning of another. */
  between(from: string, to: string): { recordedFrom: string; recordedTo: string } {
    return { recordedFrom: this.at(from), recordedTo: this.at(to) };
  }

  decided(isMeant: (one: Decided) => boolean): Decided[] {
    return this.decisions.filter(isMeant);
  }

  arrived(isMeant: (one: Arrived) => boolean): Arrived[] {
    return this.arrivals.filter(isMeant);
  }

  async rules(action: string, rules: Readonly<Record<string, unknown>>): Promise<void> {
    const reply = await this.stage.admin.put(`/v1/actions/${action}`, rules);
    expectStatus(reply, 200, 201);
    this.versions[action] = (this.versions[action] ?? 0) + 1;
  }

  /** Sends a request that must come to what `disposition` says. */
  async send(
    plan: Plan,
    disposition: string,
    { run = 'run-1', step = 'step-1', by = this.stage.orchestrator, reason }: Sending = {},
  ): Promise<Decided> {
    const evidence = { runId: run, stepId: step, rationale: `because of ${step}` };
    const { key, note } = plan;
    const reply = await by.post(
      '/v1/decisions',
      { inputs: inputsOf(plan), evidence, ...(note === undefined ? {} : { note }) },
      { ...(key === undefined ? {} : { 'idempotency-key': key }), prefer: 'wait=0' },
    );
    expectStatus(reply, ...(STATUSES[disposition] ?? []));
    if (reply.status === 202) this.tokens.set(reply.body.decisionId, reply.body.lease.token);
    return this.note(reply, plan, disposition, { run, step, by, ...(reason === undefined ? {} : { reason }) });
  }

  /** Sends several in one request. All of them are new, and applied. */
  async sendTogether(plans: readonly Plan[], run: string): Promise<void> {
    const by = this.stage.orchestrator;
    const decisions = plans.map((plan, n) => ({
      idempotencyKey: plan.key,
      inputs: inputsOf(plan),
      evidence: { runId: run, stepId: `step-${n}` },
    }));
    const reply = await by.post('/v1/decisions/batch', { decisions });
    expectStatus(reply, 200);
    for (const [n, plan] of plans.entries())
      this.note({ ...reply, ...reply.body.items[n] }, plan, 'created', { run, step: `step-${n}`, by });
  }

  async renew(decided: Decided): Promise<void> {
    await this.report(decided, 'lease', {}, 'renewed');
  }

  async complete(decided: Decided, externalRef: string, disposition = 'completed'): Promise<void> {
    const outcome = { status: 'applied', externalRef, result: { refundId: externalRef } };
    await this.report(decided, 'completion', { outcome }, disposition, disposition === 'mismatch' ? 422 : 200);
    if (disposition === 'completed') this.conclude(decided, 'applied', { externalRef });
  }

  async refuse(decided: Decided, reason: string): Promise<void> {
    await this.report(decided, 'completion', { outcome: { status: 'refused', reason } }, 'completed', 409);
    this.conclude(decided, 'refused', { reason });
  }

  async fail(decided: Decided, effect: 'none' | 'unknown'): Promise<void> {
    const state = effect === 'none' ? 'failed' : 'unknown';
    await this.report(decided, 'failure', { reason: 'connection refused', effect }, state);
    decided.state = state;
  }

  /** A report by somebody who holds nothing. */
  async reportAsStranger(decided: Decided): Promise<void> {
    const outcome = { status: 'applied', result: {} };
    await this.report(decided, 'completion', { leaseToken: `1.${'x'.repeat(43)}`, outcome }, 'lease_lost', 409);
  }

  async resolve(decided: Decided, externalRef: string): Promise<void> {
    const by = this.stage.admin;
    const outcome = { status: 'applied', externalRef, result: {} };
    expectStatus(await by.post(`/v1/decisions/${decided.decisionId}/resolution`, { outcome }), 200);
    this.conclude(decided, 'applied', { externalRef });
    this.arrive(decided, decided.key, 'resolved', { by });
  }

  private async report(
    decided: Decided,
    what: string,
    body: Readonly<Record<string, unknown>>,
    disposition: string,
    status = 200,
  ): Promise<void> {
    const leaseToken = this.tokens.get(decided.decisionId);
    const by = this.stage.orchestrator;
    const reply = await by.post(`/v1/decisions/${decided.decisionId}/${what}`, { leaseToken, ...body });
    expectStatus(reply, status);
    this.arrive(decided, decided.key, disposition, { by });
  }

  private note(
    reply: Pick<Reply, 'status' | 'body' | 'text'>,
    plan: Plan,
    disposition: string,
    sending: Sending,
  ): Decided {
    const { decisionId, key, state } = reply.body;
    let decided = this.decisions.find((one) => one.decisionId === decisionId);
    const isNew = disposition === 'created' || disposition === 'refused';
    if (isNew === (decided !== undefined))
      throw new Error(`${disposition}, but ${isNew ? 'known' : 'new'}: ${reply.text}`);
    if (decided === undefined) {
      decided = {
        decisionId,
        key,
        plan,
        actionVersion: this.versions[plan.action] ?? 0,
        receivedIn: this.phase,
        state: state ?? 'in_flight',
        outcome: null,
        reason: null,
        externalRef: null,
        recordedIn: null,
      };
      this.decisions.push(decided);
      if (disposition === 'refused') this.conclude(decided, 'refused', { reason: sending.reason ?? null });
      else if (reply.status === 201) this.conclude(decided, 'applied', {});
    } else if (disposition === 'reclaimed') decided.state = 'in_flight';
    this.arrive(decided, plan.key ?? decided.key, disposition, sending);
    return decided;
  }

  private conclude(decided: Decided, outcome: 'applied' | 'refused', more: Partial<Decided>): void {
    Object.assign(decided, { state: 'completed', outcome, recordedIn: this.phase, ...more });
  }

  private arrive(decided: Decided, key: string, disposition: string, { run, step, by }: Sending): void {
    const isFirst = disposition === 'created' && decided.outcome === 'applied';
    this.arrivals.push({
      decided,
      key,
      disposition,
      won: isFirst || ['refused', 'completed', 'resolved'].includes(disposition),
      run: run ?? null,
      step: step ?? null,
      credentialId: by === undefined ? '' : credentialIdOf(by),
      phase: this.phase,
    });
  }
}

function expectStatus({ status, text }: Reply, ...expected: number[]): void {
  if (!expected.includes(status)) throw new Error(`${status} instead of ${expected.join(' or ')}: ${text}`);
}
