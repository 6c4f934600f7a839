import { isDeepStrictEqual } from 'node:util';
import {
  canonicalJson,
  type DecisionInputs,
  deriveContentKey,
  fingerprint,
  type JsonObject,
  type JsonValue,
} from '#key';
import { type Leaf, payloadDigest } from '../pure/leaf.js';
import type { Check } from './check.js';
import { isObject } from './files.js';

/** The members that a leaf and a row of the export have in common under one name. */
const SHARED = [
  ...['ledgerEntryId', 'decisionId', 'key', 'keySource', 'contentKey', 'fingerprint', 'action', 'actionVersion'],
  ...['subject', 'reportingPeriod', 'model', 'promptTemplateSha256', 'retrievalSnapshotId', 'policyVersion'],
  ...['effectId', 'externalRef', 'recordedAt'],
] as const;

/** The members that a leaf and the decision's inputs have in common. */
const DECIDED = ['subject', 'action', 'model', 'promptTemplateSha256', 'retrievalSnapshotId', 'policyVersion'] as const;

export interface RowChecks {
  readonly rows: Check;
  readonly identities: Check;
  readonly digests: Check;
}

/** Compares a row of the export with the leaf that the log has of it. */
export function compareRow(row: JsonObject, leaf: Leaf, where: string, checks: RowChecks): void {
  const differing = differences(row, leaf);
  checks.rows.ruledBy(differing.map((name) => `${where}: ${name} is not the one of the log`));
  compareIdentity(row, leaf, where, checks.identities);
  compareDigests(row, leaf, where, checks.digests);
}

function differences(row: JsonObject, leaf: Leaf): string[] {
  const outcome = isObject(row['outcome']) ? row['outcome'] : {};
  const differing: string[] = SHARED.filter((name) => !isDeepStrictEqual(row[name], leaf[name]));
  if (!isDeepStrictEqual(outcome['status'], leaf.outcome)) differing.push('outcome');
  if (!isDeepStrictEqual(outcome['reason'] ?? null, leaf.reason)) differing.push('reason');
  return differing;
}

function compareIdentity(row: JsonObject, leaf: Leaf, where: string, check: Check): void {
  const { inputs, note } = row;
  if (!isInputs(inputs) || (note !== null && typeof note !== 'string')) {
    check.notChecked(`${where}: the inputs are not whole`);
    return;
  }
  const { canonical, key } = deriveContentKey(inputs);
  const period = inputs.params['reportingPeriod'];
  const faults = [
    ...(canonicalJson(inputs) === canonical ? [] : ['the inputs have members that are none of theirs']),
    ...(key === leaf.contentKey ? [] : ['contentKey is not that of the inputs']),
    ...(leaf.keySource === 'client' || leaf.key === leaf.contentKey ? [] : ['key is not the contentKey']),
    ...(fingerprint(canonical, note).toString('hex') === leaf.fingerprint
      ? []
      : ['fingerprint is not that of the inputs and the note']),
    ...(inputs.tenantId === leaf.tenant ? [] : ['the inputs are of another tenant']),
    ...(leaf.reportingPeriod === null || isDeepStrictEqual(period, leaf.reportingPeriod)
      ? []
      : ['reportingPeriod is not that of the inputs']),
    ...DECIDED.filter((name) => !isDeepStrictEqual(inputs[name], leaf[name])).map(
      (name) => `${name} is not that of the inputs`,
    ),
  ];
  check.ruledBy(faults.map((fault) => `${where}: ${fault}`));
}

function compareDigests(row: JsonObject, leaf: Leaf, where: string, check: Check): void {
  const salts = isObject(row['salts']) ? row['salts'] : {};
  const inputs = isObject(row['inputs']) ? row['inputs'] : {};
  const payloads: [name: string, value: JsonValue | undefined, digest: string | null][] = [
    ['params', inputs['params'], leaf.paramsDigest],
    ['note', row['note'], leaf.noteDigest],
    ['result', row['result'], leaf.resultDigest],
  ];
  for (const [name, value, digest] of payloads) {
    const salt = salts[name];
    if (typeof salt === 'string' && value !== undefined) {
      const bytes = Buffer.from(salt, 'base64url');
      const isRight = bytes.length === 32 && payloadDigest(bytes, canonicalJson(value)) === digest;
      check.ruledBy(isRight ? [] : [`${where}: ${name} is not the one of ${name}Digest`]);
    } else if (digest === null) {
      // Nothing was there when it was recorded, so nothing may be there now.
      check.ruledBy((value ?? null) === null ? [] : [`${where}: there was no ${name} when it was recorded`]);
    } else {
      check.notChecked(`${where}: ${name} or its salt is not there`);
    }
  }
}

function isInputs(value: JsonValue | undefined): value is JsonObject & DecisionInputs {
  if (!isObject(value) || !isObject(value['params'])) return false;
  const texts = (object: JsonValue | undefined, names: readonly string[]): boolean =>
    isObject(object) && names.every((name) => typeof object[name] === 'string');
  return (
    texts(value, ['tenantId', 'action', 'promptTemplateSha256', 'retrievalSnapshotId', 'policyVersion']) &&
    texts(value['subject'], ['type', 'id']) &&
    texts(value['model'], ['id', 'version'])
  );
}
