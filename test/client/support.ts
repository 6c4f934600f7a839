import { type ClientSettings, createClient, type DecisionInputs, memoryStore } from '../../libs/client/src/index.js';
import type { Ledger } from './ledgers.js';

let subjects = 0;
const RUN = `${process.pid}-${Date.now()}`;

/** Inputs that no other call has given. */
export function freshInputs(action: string, changes: Partial<DecisionInputs> = {}): DecisionInputs {
  return {
    subject: { type: 'case', id: `C-${RUN}-${(subjects += 1)}` },
    action,
    params: { amount: '10.00', currency: 'EUR' },
    model: { id: 'm-1', version: '2026-09-01' },
    promptTemplateSha256: 'a'.repeat(64),
    retrievalSnapshotId: 'rs-14',
    policyVersion: 'pol-7',
    ...changes,
  };
}

/** A client with a memory of its own, as another process has. Its pauses are short. */
export function clientOf(ledger: Ledger, changes: Partial<ClientSettings> = {}): ReturnType<typeof createClient> {
  const { url, token, tenant } = ledger;
  return createClient({ url, token, tenant, store: memoryStore(), ...changes, retry: { baseMs: 5, ...changes.retry } });
}

/** The error that a promise is rejected with. */
export async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('It was expected to fail, and did not.');
}

export async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}
