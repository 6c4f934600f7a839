import type { DispatchRules } from './dispatch-rules.js';

/** Who carries out an action's effect: the service in its own transaction, the caller under a lease, or the worker. */
export const EXECUTIONS = ['transactional', 'caller', 'dispatched'] as const;
export type Execution = (typeof EXECUTIONS)[number];

/** How often an action may be applied to a subject. */
export const UNIQUENESSES = ['none', 'subject', 'subject-and-period'] as const;
export type Uniqueness = (typeof UNIQUENESSES)[number];

/** What another key with the same content gets. */
export const SAME_CONTENTS = ['replay', 'refuse', 'allow'] as const;
export type SameContent = (typeof SAME_CONTENTS)[number];

/** What becomes of a lease that ran out: the next request may run the effect again, or nobody may. */
export const ON_EXPIRED_LEASES = ['reclaim', 'unknown'] as const;
export type OnExpiredLease = (typeof ON_EXPIRED_LEASES)[number];

/** The rules of an action, with the defaults filled in. */
export interface ActionRules {
  execution: Execution;
  uniqueness: Uniqueness;
  sameContent: SameContent;
  /** JSON Schema 2020-12 for `inputs.params`. */
  paramsSchema?: Record<string, unknown>;
  responseRetentionDays: number;
  leaseSeconds: number;
  /** Only for effects outside. */
  onExpiredLease?: OnExpiredLease;
  /** Only for what the worker carries out. */
  dispatch?: DispatchRules;
}

/** A version of an action, as it is shown. `updatedAt` is RFC 3339. */
export interface Action extends ActionRules {
  action: string;
  version: number;
  updatedAt: string;
}

export const ACTION_NAME = /^[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*$/;
export const ACTION_NAME_LENGTH = 64;
