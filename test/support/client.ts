/** An answer as it came over the socket. */
export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  /** The bytes as text. */
  readonly text: string;
  /** The bytes as JSON; `null` if they are none. */
  readonly body: any; // eslint-disable-line -- a test looks into answers of every shape
}

export interface RequestOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as it is if it is text or bytes, else as JSON. */
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

/** A caller with one credential, speaking HTTP. */
export class Client {
  constructor(
    readonly url: string,
    readonly token: string | null = null,
  ) {}

  async send(method: string, path: string, { headers = {}, body, signal }: RequestOptions = {}): Promise<Reply> {
    const isRaw = typeof body === 'string' || body instanceof Uint8Array;
    const response = await fetch(this.url + path, {
      method,
      headers: {
        ...(this.token === null ? {} : { authorization: `Bearer ${this.token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isRaw ? body : JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, body: jsonOrNull(text) };
  }

  get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Reply> {
    return this.send('GET', path, { headers });
  }

  post(path: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Reply> {
    return this.send('POST', path, { body, headers });
  }

  put(path: string, body: unknown): Promise<Reply> {
    return this.send('PUT', path, { body });
  }

  /** Registers a decision; `key` goes into the Idempotency-Key header. */
  decide(body: unknown, key?: string): Promise<Reply> {
    return this.post('/v1/decisions', body, key === undefined ? {} : { 'idempotency-key': key });
  }
}

function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The inputs of a decision, with what a test wants to differ. */
export function inputs(changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    subject: { type: 'case', id: 'C-1042' },
    action: 'note.add',
    params: { amount: '10.00', currency: 'EUR' },
    model: { id: 'm-1', version: '2026-09-01' },
    promptTemplateSha256: 'a'.repeat(64),
    retrievalSnapshotId: 'rs-14',
    policyVersion: 'pol-7',
    ...changes,
  };
}
