import type { Answer } from '#ledger';
import { Problem } from '#problem';

/** One item of a batch's answer, as text: the body holds the very bytes that the single route would have sent. */
export function itemOf(answer: Answer | Problem | undefined, requestId: string): string {
  if (answer === undefined) return itemOf(new Problem('internal', 'The item was not answered.'), requestId);
  if (answer instanceof Problem) return item(answer.status, false, JSON.stringify(answer.body(requestId)));
  return item(answer.status, answer.replayed, answer.body);
}

function item(status: number, replayed: boolean, body: string): string {
  return `{"status":${status},"replayed":${replayed},"body":${body}}`;
}
