import { PROBLEMS } from '#problem';

const HEAD = `# Problems

Every answer that is not a success is a problem of RFC 9457, sent as \`application/problem+json\`, with the members \`type\`
(\`urn:decision-ledger:problem:<code>\`), \`title\`, \`status\`, \`detail\`, \`code\`, \`retryable\` and \`requestId\`. A retryable
problem goes away by itself: send the same request with the same key again. This page is generated from the table in
\`libs/problem/src/catalogue.ts\`.

| status | code | retryable | what it says | what to do |
|---|---|---|---|---|
`;

/** `docs/problems.md`, from the catalogue. */
export function problemsPage(): string {
  const rows = Object.entries(PROBLEMS).map(
    ([code, { status, title, retryable, advice }]) =>
      `| ${status} | \`${code}\` | ${retryable ? 'yes' : 'no'} | ${title} | ${advice} |\n`,
  );
  return HEAD + rows.join('');
}
