import { applyDecorators, UseInterceptors, type Type } from '@nestjs/common';
import { ApiBearerAuth, ApiBody, ApiHeader, ApiOperation, ApiParam, ApiResponse } from '@nestjs/swagger';
import type { Role } from '#access';
import { PROBLEMS, Problem, type ProblemCode } from '#problem';
import { AccessInterceptor } from './access.interceptor.js';
import { Allow, TakesQuery } from './allow.js';

export interface AnswerDoc {
  readonly status: number;
  readonly description: string;
  readonly example?: unknown;
  /** Further answers of this kind, each with what was asked; they are shown before the example. */
  readonly examples?: readonly AnswerExample[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly type?: string;
  /** The same as text, where a caller may have either. */
  readonly asText?: string;
}

export interface AnswerExample {
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly value: unknown;
}

export interface ProblemDoc {
  readonly code: ProblemCode;
  readonly detail: string;
  readonly members?: Readonly<Record<string, unknown>>;
}

export interface RouteDoc {
  readonly id: string;
  readonly summary: string;
  readonly description: string;
  /** Who may use it; without this, anyone may. */
  readonly roles?: readonly Role[];
  readonly request?: { readonly type: Type<object>; readonly examples: Readonly<Record<string, unknown>> };
  readonly headers?: readonly { name: string; description: string; example: string }[];
  /** Whether it takes a query. A parameter is refused by every route that does not. */
  readonly takesQuery?: boolean;
  /** Whether what it answers is recorded in the log of accesses before it is answered. */
  readonly isReading?: boolean;
  readonly params?: readonly { name: string; description: string; example: string }[];
  readonly answers: readonly AnswerDoc[];
  readonly problems?: readonly ProblemDoc[];
}

const EXAMPLE_REQUEST_ID = '5f0b9a52-7c1e-4a53-9d1e-2f6f0c6f2b11';

const BODY_PROBLEMS: readonly ProblemDoc[] = [
  {
    code: 'malformed-request',
    detail: 'The member "amount" is there twice.',
    members: { errors: [{ pointer: '/inputs/params/amount', detail: 'The member "amount" is there twice.' }] },
  },
  {
    code: 'validation-failed',
    detail: '/inputs/model: is required',
    members: { errors: [{ pointer: '/inputs/model', detail: 'is required' }] },
  },
  { code: 'too-large', detail: 'The body is larger than the 256 KiB that this route takes.' },
  { code: 'unsupported-media-type', detail: 'Send the body as application/json in UTF-8, without a content coding.' },
];

const CREDENTIAL_PROBLEMS: readonly ProblemDoc[] = [
  { code: 'unauthenticated', detail: 'Send a valid credential as "Authorization: Bearer dlk_…".' },
  { code: 'forbidden', detail: 'This is for orchestrator; the credential is of the role auditor.' },
];

const FAILURES: readonly ProblemDoc[] = [
  {
    code: 'internal',
    detail: 'Something went wrong here; the request left nothing behind. Send it again with the same key.',
  },
  {
    code: 'unavailable',
    detail: 'The database cannot be reached at the moment. Send the same request again with the same key.',
  },
];

/** Everything that a route's page says, and who may use it, in one decorator. */
export function Documented(doc: RouteDoc): MethodDecorator & ClassDecorator & PropertyDecorator {
  const problems = [
    ...(doc.problems ?? []),
    ...(doc.request === undefined
      ? []
      : BODY_PROBLEMS.filter(({ code }) => !doc.problems?.some((own) => own.code === code))),
    ...(doc.roles === undefined ? [] : [...CREDENTIAL_PROBLEMS, ...FAILURES]),
  ];
  return applyDecorators(
    ApiOperation({
      operationId: doc.id,
      summary: doc.summary,
      description: doc.description,
      ...(doc.roles === undefined ? { security: [] } : {}),
    }),
    ...(doc.roles === undefined ? [] : [Allow(...doc.roles), ApiBearerAuth()]),
    ...(doc.takesQuery === true ? [TakesQuery()] : []),
    ...(doc.isReading === true ? [UseInterceptors(AccessInterceptor)] : []),
    ...(doc.headers ?? []).map((header) =>
      ApiHeader({ ...header, required: false, schema: { type: 'string', example: header.example } }),
    ),
    ...(doc.params ?? []).map(({ name, description, example }) =>
      ApiParam({ name, description, schema: { type: 'string' }, example }),
    ),
    ...(doc.request === undefined
      ? []
      : [ApiBody({ type: doc.request.type, required: true, examples: examplesOf(doc.request.examples) })]),
    ...doc.answers.map(answerResponse),
    ...statusesOf(problems).map((status) => problemResponse(status, problems)),
  );
}

function examplesOf(examples: Readonly<Record<string, unknown>>): Record<string, { value: unknown; summary: string }> {
  return Object.fromEntries(
    Object.entries(examples).map(([summary, value]) => [summary.replaceAll(/[^A-Za-z0-9]+/g, '-'), { summary, value }]),
  );
}

function answerResponse({
  status,
  description,
  example,
  examples = [],
  headers,
  type = 'application/json',
  asText,
}: AnswerDoc): MethodDecorator {
  const named = examples.map(({ name, ...rest }) => [name, rest]);
  const content =
    example === undefined
      ? {}
      : {
          content: {
            [type]: {
              schema: { type: typeof example === 'string' ? ('string' as const) : ('object' as const) },
              ...(named.length === 0
                ? { example }
                : {
                    examples: Object.fromEntries([...named, ['whole', { summary: 'A whole answer', value: example }]]),
                  }),
            },
            ...(asText === undefined ? {} : { 'text/plain': { schema: { type: 'string' as const }, example: asText } }),
          },
        };
  return ApiResponse({
    status,
    description,
    ...content,
    headers: Object.fromEntries(
      Object.entries(headers ?? {}).map(([name, what]) => [
        name,
        { description: what, schema: { type: 'string' as const } },
      ]),
    ),
  });
}

function statusesOf(problems: readonly ProblemDoc[]): number[] {
  return [...new Set(problems.map(({ code }) => PROBLEMS[code].status))].toSorted((a, b) => a - b);
}

/** One response a status, with an example for each problem that it may be. */
function problemResponse(status: number, problems: readonly ProblemDoc[]): MethodDecorator {
  const here = problems.filter(({ code }) => PROBLEMS[code].status === status);
  const examples = here.map(({ code, detail, members }) => [
    code,
    {
      summary: PROBLEMS[code].title,
      value: new Problem(code, detail, { ...(members === undefined ? {} : { members }) }).body(EXAMPLE_REQUEST_ID),
    },
  ]);
  return ApiResponse({
    status,
    description: here.map(({ code }) => `\`${code}\`: ${PROBLEMS[code].title}.`).join(' '),
    content: {
      'application/problem+json': {
        schema: { $ref: '#/components/schemas/Problem' },
        examples: Object.fromEntries(examples),
      },
    },
  });
}
