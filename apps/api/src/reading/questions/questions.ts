import { Documented, type AnswerExample, type RouteDoc } from '../../http/index.js';
import { HOW_OFTEN } from './how-often.js';
import { ON_WHAT_BASIS } from './on-what-basis.js';
import { pathOf, textOf, type Question } from './question.js';
import { WHAT_THE_RECORD_SAYS } from './what-the-record-says.js';

/** What an auditor asks: the description of the API, the guide and a test are made from it. */
export const CHAPTERS: readonly { readonly title: string; readonly questions: readonly Question[] }[] = [
  { title: 'How often', questions: HOW_OFTEN },
  { title: 'On what basis', questions: ON_WHAT_BASIS },
  { title: 'What the record shows', questions: WHAT_THE_RECORD_SAYS },
];

export const QUESTIONS: readonly Question[] = CHAPTERS.flatMap(({ questions }) => questions);

/** A route's page with the questions that it answers: in its description, and each with its request and its answer. */
export const DocumentedWithQuestions = (doc: RouteDoc): MethodDecorator => Documented(withQuestions(doc));

function withQuestions(doc: RouteDoc): RouteDoc {
  const here = QUESTIONS.filter(({ requests }) => requests.some(({ operation }) => operation === doc.id));
  const [answer, ...others] = doc.answers;
  if (here.length === 0 || answer === undefined) return doc;
  const questions = here.map(({ question }) => `- ${question}`).join('\n');
  return {
    ...doc,
    description: `${doc.description}\n\nIt answers:\n\n${questions}`,
    answers: [{ ...answer, examples: here.flatMap((question) => examplesOf(question, doc.id)) }, ...others],
  };
}

function examplesOf({ id, question, requests, reading }: Question, operation: string): AnswerExample[] {
  return requests
    .filter((asked) => asked.operation === operation)
    .map((asked, index) => ({
      name: index === 0 ? id : `${id}-${index + 1}`,
      summary: asked.part === undefined ? question : `${question} ${asked.part}`,
      description: `\`GET ${pathOf(asked)}\`\n\n${reading}\n\nThe answer is shortened.`,
      value: textOf(asked),
    }));
}
