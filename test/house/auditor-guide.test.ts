import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOT } from '#database';
import { pathOf, READING_ROUTES, textOf } from '../../apps/api/src/reading/questions/question.js';
import { QUESTIONS } from '../../apps/api/src/reading/questions/questions.js';

interface Operation {
  readonly operationId: string;
  readonly description: string;
  readonly parameters: readonly { readonly name: string }[];
  readonly responses: Readonly<Record<string, { content: Record<string, { examples: Record<string, Example> }> }>>;
}
interface Example {
  readonly description?: string;
  readonly value: unknown;
}

const openapi: { paths: Record<string, { get: Operation }> } = JSON.parse(
  readFileSync(join(PROJECT_ROOT, 'openapi/openapi.json'), 'utf8'),
);
const guide = readFileSync(join(PROJECT_ROOT, 'docs/auditor-guide.md'), 'utf8');
const asked = QUESTIONS.flatMap((question) =>
  question.requests.map((request) => [question.question, pathOf(request), request] as const),
);

test('there is a question for everything that an auditor asks, each with an id of its own', () => {
  expect(new Set(QUESTIONS.map(({ id }) => id)).size).toBe(16);
});

test.each(asked)('%s: %s is in the description of its route, with its answer', (question, path, request) => {
  const operation = openapi.paths[READING_ROUTES[request.operation]]?.get;
  expect(operation?.operationId).toBe(request.operation);
  expect(operation?.description).toContain(`- ${question}`);
  const examples = Object.values(operation?.responses['200']?.content ?? {}).flatMap(({ examples: named }) =>
    Object.values(named),
  );
  const found = examples.filter(({ description }) => description?.startsWith(`\`GET ${path}\``));
  expect(found.map(({ value }) => value)).toContainEqual(textOf(request));
});

test.each(asked)('%s: %s asks for nothing that its route does not take', (_question, _path, request) => {
  const names = openapi.paths[READING_ROUTES[request.operation]]?.get.parameters.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(Object.keys({ ...request.params, ...request.query })));
});

test.each(asked)('%s: %s is in the guide, as a command', (question, path) => {
  expect(guide).toContain(`\n### ${question}\n`);
  expect(guide).toContain(`  "$LEDGER${path}"`);
});
