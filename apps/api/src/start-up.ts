import { chmodSync, existsSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { INestApplicationContext } from '@nestjs/common';
import { Credentials, type TenantTokens } from '#access';
import { Inventory } from '#actions';
import type { Settings } from '#database';
import { EXAMPLE_ACTIONS } from '../../../examples/index.js';

const DEMO_TENANT = 'demo';

/** What a first start on the embedded database writes: `credentials.json`. */
interface FirstCredentials {
  operator: string;
  tenants: Record<string, TenantTokens>;
}

export const credentialsFile = (settings: Settings): string => join(settings.dataDir, 'credentials.json');

/**
 * Makes an operator and the tenant `demo` with the example actions, and writes their tokens, which are kept nowhere else.
 * The file is written last and is what tells that all of this is done: a start that was cut short does it again.
 */
export async function setUpDemo(app: INestApplicationContext, settings: Settings): Promise<void> {
  const file = credentialsFile(settings);
  if (existsSync(file)) return;
  const credentials = app.get(Credentials);
  const inventory = app.get(Inventory);
  const first: FirstCredentials = {
    operator: await credentials.createOperator('first operator'),
    tenants: { [DEMO_TENANT]: await credentials.renewTenant(DEMO_TENANT) },
  };
  for (const [action, rules] of Object.entries(EXAMPLE_ACTIONS))
    await inventory.put(DEMO_TENANT, action, { ...rules }, null);
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify(first, null, 2)}\n`, { mode: 0o600 });
  chmodSync(draft, 0o600);
  renameSync(draft, file);
}

/** What a person who has just started the service wants to know. */
export function startUpText(url: string, settings: Settings, isEmbedded: boolean): string {
  const lines = ['', `Decision Ledger serves ${url}`, `Swagger UI       ${url}/docs`];
  if (isEmbedded)
    lines.push(
      `Credentials      ${credentialsFile(settings)}`,
      '',
      'Try it:',
      '',
      curlToTry(url, credentialsFile(settings)),
    );
  return `${lines.join('\n')}\n`;
}

function curlToTry(url: string, file: string): string {
  const token = `$(node -p 'JSON.parse(require("fs").readFileSync(process.argv[1])).tenants.demo.orchestrator' '${file}')`;
  const body = {
    inputs: {
      subject: { type: 'case', id: 'C-1042' },
      action: 'refund.create',
      params: { amount: '10.00', currency: 'EUR' },
      model: { id: 'm-1', version: '2026-09-01' },
      promptTemplateSha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
      retrievalSnapshotId: 'rs-14',
      policyVersion: 'pol-7',
    },
  };
  return [
    `  curl -i ${url}/v1/decisions \\`,
    `    -H "Authorization: Bearer ${token}" \\`,
    `    -H 'Content-Type: application/json' \\`,
    `    -d '${JSON.stringify(body)}'`,
    '',
  ].join('\n');
}
