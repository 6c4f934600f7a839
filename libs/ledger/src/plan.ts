import { isReportingPeriod, type Action, type DispatchRules } from '#actions';
import type { EffectHandler } from '#effects';
import { Problem, validationFailed, type ProblemPlace } from '#problem';
import type { Arrival, DecisionRequest } from './decision-request.js';
import { hostOf } from './dispatch-job.js';
import { leaseSecret, type LeaseSecret } from './lease.js';
import { arrivalRow, declarativeRow, decisionRow, type DecisionRow } from './decision-row.js';

/**
 * How a request will be recorded. A request that breaks its action's rules can only be told what its key already stands
 * for: an outcome is replayed also when the rules have changed since.
 */
export type Plan = { readonly request: DecisionRequest; readonly row: DecisionRow } & (
  | { readonly kind: 'declarative' }
  | { readonly kind: 'handler'; readonly handler: EffectHandler }
  | { readonly kind: 'lease'; readonly action: Action; readonly secret: LeaseSecret }
  | { readonly kind: 'dispatch'; readonly action: Action; readonly host: string }
  | { readonly kind: 'known-only'; readonly problem: Problem }
);

export interface PlanParts {
  readonly arrival: Arrival;
  readonly request: DecisionRequest;
  /** The request's place in its batch. */
  readonly ordinal: number;
  readonly action: Action | null;
  readonly handler: EffectHandler | null;
  readonly badParams: ProblemPlace | null;
  readonly retentionSeconds: number | null;
}

export function planRequest({
  arrival,
  request,
  ordinal,
  action,
  handler,
  badParams,
  retentionSeconds,
}: PlanParts): Plan {
  const problem = brokenRule(request, action, badParams);
  if (action === null || problem !== null) {
    return {
      kind: 'known-only',
      request,
      row: arrivalRow(arrival, request, ordinal),
      problem: problem ?? unknownAction(request),
    };
  }
  const row = decisionRow(arrival, request, ordinal, action, retentionSeconds);
  if (action.execution === 'caller')
    return { kind: 'lease', request, row, action, secret: leaseSecret(arrival.caller.tenant, request) };
  if (action.execution === 'dispatched')
    return { kind: 'dispatch', request, row, action, host: hostOf(dispatchRulesOf(action)) };
  if (handler !== null) return { kind: 'handler', request, row, handler };
  return { kind: 'declarative', request, row: declarativeRow(row, request) };
}

function brokenRule(request: DecisionRequest, action: Action | null, badParams: ProblemPlace | null): Problem | null {
  if (action === null) return unknownAction(request);
  if (badParams !== null) return validationFailed([badParams]);
  if (action.uniqueness === 'subject-and-period') {
    const period = request.inputs.params['reportingPeriod'];
    if (typeof period !== 'string' || !isReportingPeriod(period)) {
      const detail = 'must be a period: YYYY, YYYY-H1..2, YYYY-Q1..4, YYYY-MM, YYYY-Www or YYYY-MM-DD';
      return validationFailed([{ pointer: '/inputs/params/reportingPeriod', detail }]);
    }
  }
  return null;
}

/** Every action that was put as dispatched has them. */
function dispatchRulesOf({ action, dispatch }: Action): DispatchRules {
  if (dispatch === undefined) throw new Error(`${action} is dispatched and does not say how`);
  return dispatch;
}

function unknownAction(request: DecisionRequest): Problem {
  return new Problem(
    'unknown-action',
    `The inventory has no action ${request.inputs.action}. An admin can put it there.`,
  );
}

/** What neighbours in a batch may share a transaction for; handlers and claims have one each. */
const TOGETHER: ReadonlySet<Plan['kind']> = new Set(['declarative', 'known-only']);

/** Splits a batch where its kind changes. */
export function consecutive(plans: readonly Plan[]): Plan[][] {
  const runs: Plan[][] = [];
  for (const plan of plans) {
    const last = runs.at(-1);
    if (last?.[0]?.kind === plan.kind && TOGETHER.has(plan.kind)) last.push(plan);
    else runs.push([plan]);
  }
  return runs;
}
