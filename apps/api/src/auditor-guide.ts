import { pathOf, textOf, type Asked, type Question } from './reading/questions/question.js';
import { CHAPTERS } from './reading/questions/questions.js';

const HEAD = `# For an auditor

Every question below is a request that you can send yourself, with a credential that can read everything of its tenant and
write nothing. Each has its answer beside it and says how to read it. An answer is shortened here to what its question is
about; a real row has more members. Swagger UI, at \`/docs\`, has the same questions at the routes that answer them.

This page is generated from \`apps/api/src/reading/questions/\`. A test asks each question of a population whose answer is known.

## Before the first question

Ask the administrator for an auditor's token; where people sign in with an OpenID provider, its JWT serves as one. On a machine on
which the service was started with its own database:

\`\`\`sh
LEDGER=http://127.0.0.1:3000
AUDITOR=$(node -p 'JSON.parse(require("fs").readFileSync(".data/credentials.json")).tenants.demo.auditor')
\`\`\`

\`curl\` sends the requests. Some commands hand the answer on to \`jq\`, which picks fields out of JSON. The answers can be read
without it.

### Words

- A **decision** is one intended effect: this refund, this report. It has one **key**, however often it is sent.
- An **attempt** is one arrival of a request for a key: the first one, a retry, a duplicate, a report of how it ended.
- An **outcome** is \`applied\` (the effect was carried out) or \`refused\` (it was decided not to, for a \`reason\`).
- A **ledger entry** is the record of an outcome. There is one for each decision that has an outcome, and nobody can change it.

A decision without an outcome has \`outcome: null\`, and its \`state\` says why: \`in_flight\` (somebody is carrying it out), \`failed\`
(it surely did not happen, and may be tried again), \`unknown\` (it may have happened). Only an effect outside the service's
database can be in these states.

### What became of an attempt

| disposition | meaning |
|---|---|
| \`created\` | the first request: applied, or, for an effect outside, permitted to begin |
| \`refused\` | the first request: refused, and recorded |
| \`replayed\` | a repeat: it was given the answer that stands |
| \`mismatch\` | the key stands for another request: turned away |
| \`in_flight\` | told to come back, since another was under way |
| \`same_content\` | another key with the same content: given the first decision, or turned away |
| \`reclaimed\` | took over after a failure or after a lease that ran out |
| \`renewed\`, \`completed\`, \`failed\`, \`unknown\` | a report by whoever carries it out; \`unknown\` also a request that was told so |
| \`lease_lost\` | a report by somebody who no longer had the right to carry it out |
| \`resolved\` | an admin settled what was unknown |

\`decisionId\` is the decision that the attempt was about; for \`in_flight\` the one that it had to wait for, for \`same_content\` the one
that it was given. \`won\` marks the one attempt that brought the recorded outcome. As long as there is none, no attempt has won.

### Filters

The same filters go with lists, counts and exports, so the three agree. All that are given must hold. Values are compared
letter for letter. A parameter that is unknown, empty or given twice is refused with \`400\`, so an answer is never wider than
what was asked.

Times are UTC with microseconds. \`recordedFrom\` is included, \`recordedTo\` is not, so the third quarter is from
\`2026-07-01T00:00:00Z\` to \`2026-10-01T00:00:00Z\`. Another offset may be given; write its \`+\` as \`%2B\`. For decisions they mean the
time of recording, which what has no outcome does not have: ask for that by \`state\`. For attempts they mean the time of arrival.
There \`stepId\`, \`runId\` and \`credentialId\` are the attempt's own, and other filters look at its decision; for decisions they find
those for which any attempt had them.

### Lists

A page has 50 rows, or \`limit\`, at most 500. If \`nextCursor\` is not null, send the same request with \`&cursor=\` and its value for the
next page. Every row that was there when you began comes exactly once, whatever is recorded while you read.

### Counts

\`/v1/decisions/count\` counts decisions: one that was tried ten times counts once. \`/v1/attempts/count\` counts arrivals. \`groupBy\`
splits a count by one or more names; \`total\` is their sum. What has no value for a name is counted under \`null\`.

### Exports

An export is a whole population in one file: NDJSON, one JSON object a line, or with \`format=csv\` a table that a spreadsheet opens. In
it, a cell that a spreadsheet would take for a formula has an apostrophe before it. The last line is the trailer: the number of rows
and the SHA-256 of every byte before it. These print the trailer, the number of rows, and the hash:

\`\`\`sh
tail -n 1 population.ndjson
head -n -1 population.ndjson | wc -l
head -n -1 population.ndjson | sha256sum
\`\`\`

(On macOS: \`sed '$d' population.ndjson | shasum -a 256\`. In CSV, the trailer's line begins with \`#\`, the heading is not a row, and a
cell may hold a line break, so count the rows in the spreadsheet.)

A file without a trailer was broken off. Go on with the \`cursor\` of the last whole row, in the same request with \`&cursor=\`; the
trailer of the second file counts the rows of the second file.

### What you can rely on, and from when

- An outcome is on disk before anybody was told of it. So is a refused attempt, and a mismatched one.
- The other attempts can be read within a second. If the database's machine fails, repeats of its last moments may be missing;
  the decisions that they repeat are not.
- Your reading is in the access log before the first byte of its answer.
- Decisions, attempts, ledger entries and the access log can be added to by the service, and not changed or deleted.
- A decision shows its model, template, snapshot, policy and rules as they were stored with it. Nothing is looked up now.

`;

/** `docs/auditor-guide.md`, from the questions. */
export function auditorGuide(): string {
  const chapters = CHAPTERS.map(({ title, questions }) => `## ${title}\n\n${questions.map(section).join('\n')}`);
  return HEAD + chapters.join('\n');
}

function section({ question, before, requests, reading }: Question): string {
  return `### ${question}\n\n${wrapped(before)}\n${requests.map(request).join('')}${wrapped(reading)}`;
}

/** A paragraph in lines as they are written by hand. */
const wrapped = (text: string): string => text.replaceAll(/(.{1,120})(?: |$)/g, '$1\n');

function request(asked: Asked): string {
  const part = asked.part === undefined ? '' : `${asked.part}:\n\n`;
  const pipe = asked.pipe === undefined ? '' : ` \\\n  ${asked.pipe.startsWith('-') ? '' : '| '}${asked.pipe}`;
  const curl = `curl -s -H "Authorization: Bearer $AUDITOR" \\\n  "$LEDGER${pathOf(asked)}"${pipe}`;
  const taken = asked.pipe?.startsWith('jq') === true ? 'The answer that `jq` is given:\n\n' : '';
  return `${part}\`\`\`sh\n${curl}\n\`\`\`\n\n${taken}\`\`\`json\n${shown(asked)}\n\`\`\`\n\n`;
}

/** JSON as a person lays it out: an object stands on one line if there is room for it. */
function shown(asked: Asked): string {
  const answer = textOf(asked);
  return typeof answer === 'string' ? answer.trimEnd() : laidOut(answer, '');
}

const WIDTH = 110;

function laidOut(value: unknown, indent: string): string {
  const flat = spaced(value);
  if (typeof value !== 'object' || value === null || indent.length + flat.length <= WIDTH) return flat;
  const inner = `${indent}  `;
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  const members = Array.isArray(value)
    ? value.map((item: unknown) => inner + laidOut(item, inner))
    : Object.entries(value).map(([name, member]) => `${inner}${JSON.stringify(name)}: ${laidOut(member, inner)}`);
  return `${open}\n${members.join(',\n')}\n${indent}${close}`;
}

function spaced(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spaced).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}: ${spaced(member)}`);
  return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`;
}
