import type { Role } from '#access';
import { ENTRY_ID, RECORDED_AT, ROW } from '../decisions/sample.js';
import { Documented } from '../http/index.js';

const AUDITORS: readonly Role[] = ['admin', 'auditor'];

const ENTRY = {
  v: 1,
  tenant: 'demo',
  ledgerEntryId: ENTRY_ID,
  decisionId: ROW.decisionId,
  key: ROW.key,
  keySource: ROW.keySource,
  contentKey: ROW.contentKey,
  fingerprint: '8494ad7ae90ef9d055250ec98d5bfd2cef02aa85994c17f7c592f444657dad8e',
  action: ROW.action,
  actionVersion: 1,
  subject: ROW.subject,
  reportingPeriod: null,
  outcome: 'applied',
  reason: null,
  model: ROW.model,
  promptTemplateSha256: ROW.promptTemplateSha256,
  retrievalSnapshotId: ROW.retrievalSnapshotId,
  policyVersion: ROW.policyVersion,
  effectId: ROW.effectId,
  externalRef: null,
  recordedBy: '3f9c0a7b1d2e4f5a6b7c',
  recordedAt: RECORDED_AT,
  paramsDigest: '6f3a0f1c9d2b4e58a7c6d5e4f30219b8c7a6958473625140f9e8d7c6b5a49382',
  noteDigest: null,
  resultDigest: '1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90a',
  leafIndex: 1,
  salts: {
    params: 'q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA',
    note: null,
    result: 'EjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJCrze8',
  },
};

export const ListEntriesDoc = (): MethodDecorator =>
  Documented({
    id: 'listLedgerEntries',
    takesQuery: true,
    isReading: true,
    summary: 'The record',
    description:
      'The entries of the ledger, one for each decision that has an outcome, in the order of recording, for the filters of the list of decisions. Each is shown as its leaf in the log has it. A digest is SHA-256 over a salt of 32 bytes (base64url, in `salts`) and the RFC 8785 bytes of the value, so that it can be checked as long as the value is there, and gives nothing away once it is erased.',
    roles: AUDITORS,
    answers: [{ status: 200, description: 'A page of entries.', example: { items: [ENTRY], nextCursor: null } }],
    problems: [
      {
        code: 'validation-failed',
        detail: 'cursor: belongs to another question: send it with the filters and the order it came with',
        members: {
          errors: [
            {
              pointer: 'cursor',
              detail: 'belongs to another question: send it with the filters and the order it came with',
            },
          ],
        },
      },
    ],
  });

export const GetEntryDoc = (): MethodDecorator =>
  Documented({
    id: 'getLedgerEntry',
    isReading: true,
    summary: 'One entry of the record',
    description:
      'The entry as its leaf in the log has it, its place there once it is sealed, and the salts of its digests.',
    roles: AUDITORS,
    params: [{ name: 'ledgerEntryId', description: 'The id of the entry.', example: ENTRY_ID }],
    answers: [{ status: 200, description: 'The entry.', example: ENTRY }],
    problems: [{ code: 'not-found', detail: 'There is no such ledger entry.' }],
  });
