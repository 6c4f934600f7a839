import { connect } from 'node:net';

/** One answer, as its bytes came over the connection. */
export interface WireReply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

export interface Exchange {
  /** The final answers, in the order in which they came; an interim `100 Continue` is not one. */
  readonly replies: readonly WireReply[];
  /** Whether the connection ended before the time was over. */
  readonly ended: boolean;
}

const BLANK_LINE = '\r\n\r\n';

/**
 * Sends bytes on a connection of its own and gives back what comes: at least `want` answers, or all until the connection
 * ends or the time is over.
 *
 * @param half whether to end our side of the connection behind the last byte
 */
export async function exchange(
  url: string,
  bytes: Buffer,
  { want = 1, half = false, withinMs = 15_000 }: { want?: number; half?: boolean; withinMs?: number } = {},
): Promise<Exchange> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let got = Buffer.alloc(0);
  return new Promise((resolve) => {
    const finish = (ended: boolean): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ replies: readReplies(got), ended });
    };
    const timer = setTimeout(() => finish(false), withinMs);
    socket.on('data', (chunk) => {
      got = Buffer.concat([got, chunk]);
      if (want > 0 && readReplies(got).length >= want) finish(false);
    });
    // A server that has answered may close while we still write: what it said counts, not that it hung up.
    socket.on('error', () => undefined);
    socket.on('close', () => finish(true));
    if (half) socket.end(bytes);
    else socket.write(bytes);
  });
}

/** The whole answers in a run of bytes. */
function readReplies(bytes: Buffer): WireReply[] {
  const replies: WireReply[] = [];
  for (let at = 0; ;) {
    const end = bytes.indexOf(BLANK_LINE, at);
    if (end < 0) return replies;
    const [statusLine = '', ...lines] = bytes.subarray(at, end).toString('latin1').split('\r\n');
    const status = Number(statusLine.split(' ')[1]);
    const headers = new Headers();
    for (const line of lines) {
      const colon = line.indexOf(':');
      headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
    }
    const body = bodyAt(bytes, end + BLANK_LINE.length, headers);
    if (body === null) return replies;
    at = body.end;
    if (status >= 200) replies.push({ status, headers, text: body.text });
  }
}

/** A body by its length, or, where Node itself answers, in chunks of which the first is the last. */
function bodyAt(bytes: Buffer, start: number, headers: Headers): { text: string; end: number } | null {
  if (headers.get('transfer-encoding') === 'chunked') {
    const end = bytes.indexOf(`0${BLANK_LINE}`, start);
    return end < 0 ? null : { text: bytes.subarray(start, end).toString('utf8'), end: end + 1 + BLANK_LINE.length };
  }
  const end = start + Number(headers.get('content-length') ?? 0);
  return end > bytes.length ? null : { text: bytes.subarray(start, end).toString('utf8'), end };
}

/** A request as bytes. Header lines are sent as they are, in Latin-1; Host and the body's length are added. */
export function requestBytes(
  method: string,
  path: string,
  lines: readonly string[],
  body: Buffer | string | null = null,
): Buffer {
  const bytes = body === null ? null : Buffer.from(body);
  const head = [
    `${method} ${path} HTTP/1.1`,
    'Host: localhost',
    ...(bytes === null ? [] : [`Content-Length: ${bytes.length}`]),
    ...lines,
  ];
  return Buffer.concat([Buffer.from(head.join('\r\n') + BLANK_LINE, 'latin1'), bytes ?? Buffer.alloc(0)]);
}
