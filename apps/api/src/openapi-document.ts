import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';

const DESCRIPTION = `Every effectful decision of an AI system, registered once.

A decision is registered under an idempotency key: the caller's, or a hash of the decision's inputs. The key's state, the
ledger entry and the effect commit in one transaction, so every retry and every duplicate ends in the one recorded outcome.

To try it here: **Authorize** with a token of the tenant, then register a decision, send it again, and read it back.

For an auditor: a route that reads says which questions it answers, and has each of them, with its answer, among its examples.`;

const TOKENS = `A token of the ledger, \`dlk_<credentialId>_<secret>\`. Where the service is told of an OpenID provider, also a JWT of that
provider: signed with an asymmetric algorithm by a key that the provider publishes, for the service's audience, with \`exp\`, \`sub\`,
the tenant, and one role of admin, orchestrator and auditor.`;

/** In the order in which an auditor works; what only a program sends comes after it. */
const TAGS: readonly [string, string][] = [
  ['Decisions', 'What was decided, how often, and on what basis.'],
  ['Attempts', 'Every arrival of a request: who tried, when, and what became of it.'],
  ['Ledger entries', 'The record: one entry for each decision that has an outcome.'],
  ['Exports', 'The complete population, with proof of its count.'],
  [
    'Log',
    'Proof that what was recorded was not altered: checkpoints, tiles, receipts. Keep a checkpoint; it is all you need later.',
  ],
  ['Idempotency records', 'What a key stands for.'],
  ['Actions', 'The inventory of what may be decided, and the rules, in each version.'],
  ['Access log', 'Who looked at these records.'],
  ['Registering', 'A decision is registered once, however often it is sent.'],
  ['Leases', 'The life of a decision whose effect is outside.'],
  ['Tenants and credentials', 'Who may call.'],
  ['Service', 'Whether it runs, and how.'],
];

/** The problem that every failure is written as (RFC 9457). */
const PROBLEM_SCHEMA = {
  type: 'object',
  // Some problems carry more: which decision stands, who won, why.
  additionalProperties: true,
  required: ['type', 'title', 'status', 'detail', 'code', 'retryable', 'requestId'],
  properties: {
    type: { type: 'string', example: 'urn:decision-ledger:problem:fingerprint-mismatch' },
    title: { type: 'string' },
    status: { type: 'integer', example: 422 },
    detail: { type: 'string', description: 'One sentence for whoever has to act on it.' },
    code: { type: 'string', example: 'fingerprint-mismatch' },
    retryable: { type: 'boolean', description: 'Whether the same request may succeed later.' },
    requestId: { type: 'string', description: 'Of this request, or, in a replayed problem, of the first one.' },
    errors: {
      type: 'array',
      description: 'Where the request breaks a rule.',
      items: {
        type: 'object',
        required: ['pointer', 'detail'],
        properties: {
          pointer: { type: 'string', description: 'JSON Pointer, or the parameter.' },
          detail: { type: 'string' },
        },
      },
    },
  },
} as const;

/** The API's description, OpenAPI 3.1. */
export function buildDocument(app: INestApplication): OpenAPIObject {
  const builder = new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle('Decision Ledger')
    .setDescription(DESCRIPTION)
    .setVersion('1')
    .setLicense('Apache-2.0', 'https://www.apache.org/licenses/LICENSE-2.0')
    .addServer('/', 'This server')
    .addBearerAuth({
      type: 'http',
      scheme: 'bearer',
      bearerFormat: 'dlk_<credentialId>_<secret>, or a JWT',
      description: TOKENS,
    });
  for (const [name, description] of TAGS) builder.addTag(name, description);
  const document = SwaggerModule.createDocument(app, builder.build());
  return {
    ...document,
    components: {
      ...document.components,
      schemas: { ...document.components?.schemas, Problem: structuredClone(PROBLEM_SCHEMA) as object },
    },
  };
}

/** `/docs` is Swagger UI, `/openapi.json` the description that it shows. */
export async function serveDocument(app: NestFastifyApplication): Promise<void> {
  SwaggerModule.setup('docs', app, () => buildDocument(app), {
    jsonDocumentUrl: 'openapi.json',
    customSiteTitle: 'Decision Ledger',
    swaggerOptions: { persistAuthorization: true, tryItOutEnabled: true, displayRequestDuration: true },
  });
}
