import { secretVariable, type DispatchRules } from '#actions';
import { portOf, type Call } from '#effects';
import { canonicalJson, downstreamDigest, downstreamKeys, sha256, type JsonObject } from '#key';

/** A try that a worker has claimed: what to send, and under which lease. */
export interface DispatchJob {
  readonly tenant: string;
  readonly decisionId: string;
  readonly key: string;
  readonly action: string;
  /** The request that queued the decision. */
  readonly requestId: string;
  /** 1 for the first. */
  readonly tries: number;
  /** Name and port: whose circuit it is. */
  readonly host: string;
  readonly call: Call;
  readonly leaseNumber: number;
  readonly leaseMs: number;
  /** `performance.now()` from before the lease was taken: it lasts until `leaseMs` after this at the least. */
  readonly claimedAt: number;
  /** The same moment, or a little later, by the database's clock, in milliseconds since 1970. */
  readonly claimedAtEpochMs: number;
}

/** The database's composite type `dispatch_job`. */
export interface JobRow {
  decision_id: string;
  lease_number: number;
  lease_seconds: number;
  try: number;
  request_id: string;
  idem_key: string;
  key_source: string;
  action: string;
  inputs: string;
  rules: DispatchRules;
  /** Beside the type: when the row was read. */
  claimed_at_epoch_ms: number;
}

const MS_A_SECOND = 1000;

/** The host that a call goes to, with its port. */
export function hostOf({ url }: DispatchRules): string {
  const parsed = new URL(url);
  return `${parsed.hostname}:${portOf(parsed)}`;
}

export function jobOf(tenant: string, row: JobRow, claimedAt: number): DispatchJob {
  return {
    tenant,
    decisionId: row.decision_id,
    key: row.idem_key,
    action: row.action,
    requestId: row.request_id,
    tries: row.try,
    host: hostOf(row.rules),
    call: callOf(tenant, row),
    leaseNumber: row.lease_number,
    leaseMs: row.lease_seconds * MS_A_SECOND,
    claimedAt,
    claimedAtEpochMs: row.claimed_at_epoch_ms,
  };
}

/** The same bytes on every try: both the body and the key are made from the canonical inputs, which never change. */
function callOf(tenant: string, { idem_key: key, key_source: keySource, inputs, rules }: JobRow): Call {
  const { params }: { params: JsonObject } = JSON.parse(inputs);
  const digest = keySource === 'content' ? sha256(inputs) : downstreamDigest({ tenantId: tenant, key });
  const variables = Object.entries(rules.secretHeaders).map(([name, source]) => [name, secretVariable(source) ?? '']);
  return {
    url: rules.url,
    keyHeader: rules.keyHeader,
    key: downstreamKeys({ key, digest })[rules.keyForm],
    body: canonicalJson(params),
    timeoutMs: rules.timeoutMs,
    secretVariables: Object.fromEntries(variables),
  };
}
