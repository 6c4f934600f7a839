import { randomBytes } from 'node:crypto';
import { downstreamDigest, downstreamKeys, sha256 } from '#key';
import { leaseTime, type Answer, type AnswerRow } from './answer.js';
import type { DecisionRequest } from './decision-request.js';

const SECRET_BYTES = 32;
const TOKEN = /^([1-9]\d{0,9})\.([A-Za-z0-9_-]{43})$/;

/** What a holder shows: the fencing number, and the secret that goes with it. */
export interface LeaseToken {
  readonly number: number;
  readonly secretSha256: Buffer;
}

/** The secret of a lease, and what the database keeps of it and of the nonce. */
export interface LeaseSecret {
  readonly secret: string;
  readonly secretSha256: Buffer;
  readonly nonceSha256: Buffer | null;
}

/**
 * The secret of a new lease: random, or made from the caller's nonce, so that whoever shows the nonce again can be given
 * the same token again although only its hash is kept.
 */
export function leaseSecret(tenant: string, { key, leaseNonce }: DecisionRequest): LeaseSecret {
  const seed = leaseNonce === null ? null : `lease\u001f${tenant}\u001f${key}\u001f${leaseNonce}`;
  const secret = (seed === null ? randomBytes(SECRET_BYTES) : sha256(seed)).toString('base64url');
  return { secret, secretSha256: sha256(secret), nonceSha256: seed === null ? null : sha256(`nonce\u001f${seed}`) };
}

/** Reads a token; null for what cannot be one. */
export function readLeaseToken(token: string): LeaseToken | null {
  const [, number, secret] = TOKEN.exec(token) ?? [];
  return number === undefined || secret === undefined ? null : { number: Number(number), secretSha256: sha256(secret) };
}

/**
 * `202`: the effect is the caller's to run, under this lease and with these keys for the systems that it calls; or, without
 * a lease, the worker's.
 */
export function claimedAnswer(
  row: AnswerRow,
  request: DecisionRequest,
  tenant: string,
  lease: LeaseSecret | null,
): Answer {
  const digest =
    request.keySource === 'content' ? request.contentSha256 : downstreamDigest({ tenantId: tenant, key: request.key });
  const body = {
    decisionId: row.decision_id,
    key: request.key,
    keySource: request.keySource,
    contentKey: request.contentKey,
    state: row.state,
    ...(lease === null ? {} : { lease: leaseMember(row, lease) }),
    downstreamKeys: downstreamKeys({ key: request.key, digest }),
  };
  return {
    disposition: row.disposition,
    decisionId: row.decision_id,
    status: 202,
    body: JSON.stringify(body),
    replayed: false,
    expiresAtEpoch: null,
    retryAfterSeconds: null,
    ...(lease === null ? {} : leaseTime(row)),
  };
}

function leaseMember({ lease_number: number, locked_until: lockedUntil }: AnswerRow, { secret }: LeaseSecret): unknown {
  return { token: `${number}.${secret}`, number, lockedUntil };
}
