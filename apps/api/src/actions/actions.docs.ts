import type { Role } from '#access';
import { Documented } from '../http/index.js';
import { DocumentedWithQuestions } from '../reading/questions/questions.js';
import { PutActionRequest } from './actions.dto.js';

const OF_THE_TENANT: readonly Role[] = ['admin', 'orchestrator', 'auditor'];

const RULES = {
  execution: 'transactional',
  uniqueness: 'subject-and-period',
  sameContent: 'replay',
  responseRetentionDays: 90,
};
const ACTION = { action: 'sar.file', version: 1, ...RULES, leaseSeconds: 30, updatedAt: '2026-11-30T17:30:00.000001Z' };
const DISPATCHED = {
  execution: 'dispatched',
  dispatch: {
    url: 'https://payments.example/v1/refunds',
    keyHeader: 'Idempotency-Key',
    keyForm: 'uuid4',
    secretHeaders: { Authorization: 'env:PAYMENTS_TOKEN' },
  },
};
const NAME = { name: 'action', description: 'The name of the action.', example: 'sar.file' };

export const PutActionDoc = (): MethodDecorator =>
  Documented({
    id: 'putAction',
    summary: 'Put an action into the inventory, or change its rules',
    description:
      'A change makes a new version; decisions keep the version they were made under. The same rules again change nothing.',
    roles: ['admin'],
    params: [NAME],
    request: {
      type: PutActionRequest,
      examples: { 'one report a case and period': RULES, 'a call that the worker makes': DISPATCHED },
    },
    answers: [
      {
        status: 200,
        description: 'The action was there: unchanged, or in a new version.',
        example: { ...ACTION, version: 2 },
      },
      { status: 201, description: 'The action is new.', example: ACTION },
    ],
    problems: [
      { code: 'host-not-allowed', detail: 'The operator has not allowed calls to payments.example.' },
      {
        code: 'unknown-secret',
        detail: 'The environment has no such secret as the header Authorization is to have.',
      },
    ],
  });

export const ListActionsDoc = (): MethodDecorator =>
  Documented({
    id: 'listActions',
    summary: 'What may be decided',
    description: 'Every action of the inventory in its latest version.',
    roles: OF_THE_TENANT,
    answers: [{ status: 200, description: 'The inventory.', example: { items: [ACTION] } }],
  });

export const GetActionDoc = (): MethodDecorator =>
  Documented({
    id: 'getAction',
    summary: 'The rules of one action',
    description: 'The action in its latest version.',
    roles: OF_THE_TENANT,
    params: [NAME],
    answers: [{ status: 200, description: 'The action.', example: ACTION }],
    problems: [{ code: 'not-found', detail: 'The inventory has no such action.' }],
  });

export const ListVersionsDoc = (): MethodDecorator =>
  DocumentedWithQuestions({
    id: 'listActionVersions',
    isReading: true,
    summary: 'How the rules of one action changed',
    description:
      'Every version of the action with its rules, when it was made and by which credential; null for one that came with the first start. A decision keeps the version that it was made under: count decisions by `actionVersion` to see which fall under which.',
    roles: OF_THE_TENANT,
    params: [NAME],
    answers: [
      {
        status: 200,
        description: 'The versions.',
        example: { items: [{ ...ACTION, credentialId: '3f9c0a7b1d2e4f5a6b7c' }] },
      },
    ],
    problems: [{ code: 'not-found', detail: 'The inventory has no such action.' }],
  });
