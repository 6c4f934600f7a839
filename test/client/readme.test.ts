import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { BUILD_TIMEOUT_MS, CLIENT, installClient, type Project } from './installed.js';
import { fakeLedger, type Ledger } from './ledgers.js';

const EXAMPLES = ['refund.ts', 'close-case.ts', 'agent.ts'];

let ledger: Ledger;
let project: Project;
const refunds: unknown[] = [];
const payments = createServer((request, response) => {
  refunds.push(request.headers['idempotency-key']);
  response.setHeader('content-type', 'application/json').end('{"id":"re_1","status":"pending"}');
});

beforeAll(async () => {
  const crew = { 'crew.send': { execution: 'caller' } } as const;
  [ledger, project] = await Promise.all([fakeLedger(crew), installClient()]);
  await once(payments.listen(0, '127.0.0.1'), 'listening');
  const readme = await readFile(join(CLIENT, 'README.md'), 'utf8');
  const blocks = [...readme.matchAll(/^```ts\n\/\/ (\S+\.ts)\n([\s\S]*?)^```$/gm)];
  expect(blocks.map(([, name]) => name)).toEqual(EXAMPLES);
  for (const [, name = '', text = ''] of blocks) await project.write(name, text);
  await project.compile(...EXAMPLES);
}, BUILD_TIMEOUT_MS);
afterAll(async () => {
  payments.close();
  await ledger?.stop();
  await project?.remove();
});

async function outputOf(example: string): Promise<string> {
  const { port } = payments.address() as AddressInfo;
  const env = { LEDGER_URL: ledger.url, LEDGER_TOKEN: ledger.token, PAYMENTS_URL: `http://127.0.0.1:${port}` };
  const { stdout } = await project.node(example.replace('.ts', '.js'), env);
  return stdout.trim();
}

describe('the examples of the README compile, run, and do what it says', () => {
  test('a refund through a payment provider', async () => {
    expect(await outputOf('refund.ts')).toBe('re_1 is pending');
    expect(await outputOf('refund.ts')).toBe('re_1 is pending, as was recorded');
    expect(refunds).toEqual([expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4/)]);
  });

  test('an effect that the service applies itself', async () => {
    expect((await outputOf('close-case.ts')).split('\n')).toEqual([
      'm-1: applied',
      'm-1: applied',
      'm-2: closed already, by decision of the winner',
    ]);
  });

  test('a tool in an agent’s loop', async () => {
    expect(await outputOf('agent.ts')).toBe('3 calls, 2 decisions, 2 crews sent');
    expect(await outputOf('agent.ts')).toBe('3 calls, 2 decisions, 0 crews sent');
  });
});
