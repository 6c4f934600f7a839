import type { ProblemPlace } from '#problem';

/** In which form a downstream takes the key. */
export const KEY_FORMS = ['key', 'hex40', 'hex32', 'uuid4'] as const;
export type KeyForm = (typeof KEY_FORMS)[number];

/** How the worker makes the call of a dispatched action. */
export interface DispatchRules {
  url: string;
  method: 'POST';
  keyHeader: string;
  keyForm: KeyForm;
  /** For the whole call: connecting, sending, and the answer to its end. */
  timeoutMs: number;
  maxAttempts: number;
  /** For how long after the first try the downstream remembers the key. */
  idempotencyWindowSeconds: number;
  /** Header names, each with where its value comes from: `env:NAME`. */
  secretHeaders: Record<string, string>;
}

export const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
export const HEADER_NAME_LENGTH = 128;
export const MOST_SECRET_HEADERS = 20;
const SECRET = /^env:([A-Za-z_][A-Za-z0-9_]{0,127})$/;

/** Headers that frame the message, route it or are set by the service: whoever could set them would send another message. */
const RESERVED_HEADERS = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
]);

/** The name of the variable that a secret comes from; null if it is not of the form `env:NAME`. */
export function secretVariable(source: string): string | null {
  return SECRET.exec(source)?.[1] ?? null;
}

/** Every place in which a call could not be made as the rules say, whatever hosts and secrets there are. */
export function dispatchFlaws({ url, keyHeader, secretHeaders }: DispatchRules): ProblemPlace[] {
  const flaws: ProblemPlace[] = [];
  const flawOfUrl = urlFlaw(url);
  if (flawOfUrl !== null) flaws.push({ pointer: '/dispatch/url', detail: flawOfUrl });
  const flawOfKey = headerFlaw(keyHeader);
  if (flawOfKey !== null) flaws.push({ pointer: '/dispatch/keyHeader', detail: flawOfKey });
  const names = Object.keys(secretHeaders);
  if (names.length > MOST_SECRET_HEADERS)
    flaws.push({ pointer: '/dispatch/secretHeaders', detail: `must be at most ${MOST_SECRET_HEADERS}` });
  const taken = new Set([keyHeader.toLowerCase()]);
  for (const [name, source] of Object.entries(secretHeaders)) {
    const pointer = `/dispatch/secretHeaders/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    const flaw = headerFlaw(name);
    if (flaw !== null) flaws.push({ pointer, detail: flaw });
    else if (taken.has(name.toLowerCase())) flaws.push({ pointer, detail: 'is there twice, or carries the key' });
    else if (typeof source !== 'string' || secretVariable(source) === null)
      flaws.push({ pointer, detail: 'must be of the form env:NAME' });
    taken.add(name.toLowerCase());
  }
  return flaws;
}

function urlFlaw(text: string): string | null {
  if (!URL.canParse(text)) return 'must be an absolute URL';
  const { protocol, username, password } = new URL(text);
  if (protocol !== 'http:' && protocol !== 'https:') return 'must be an http or https URL';
  if (username !== '' || password !== '') return 'must not carry credentials: name a secret header instead';
  return text.includes('#') ? 'must not have a fragment' : null;
}

function headerFlaw(name: string): string | null {
  if (!HEADER_NAME.test(name) || name.length > HEADER_NAME_LENGTH) return 'must be the name of a header';
  return RESERVED_HEADERS.has(name.toLowerCase()) ? 'is a header that the service sets itself' : null;
}
