import { connect } from 'node:net';
import { once } from 'node:events';

/** An answer to bytes that no well-behaved client would send. */
export interface RawReply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: any; // eslint-disable-line -- a test looks into answers of every shape
}

/**
 * Sends a request line, header lines and a body exactly as they are given, on a connection of its own.
 *
 * @param head the lines before the body, without Host, Connection and Content-Length, which are added
 */
export async function sendRaw(url: string, head: readonly string[], body: string | Buffer = ''): Promise<RawReply> {
  const { hostname, port, host } = new URL(url);
  const socket = connect(Number(port), hostname);
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  const [requestLine = '', ...lines] = head;
  const length = Buffer.byteLength(body);
  socket.write(
    [requestLine, `Host: ${host}`, 'Connection: close', `Content-Length: ${length}`, ...lines, '', ''].join('\r\n'),
    'latin1',
  );
  socket.write(body);
  await once(socket, 'close');
  return parse(Buffer.concat(chunks));
}

function parse(bytes: Buffer): RawReply {
  const end = bytes.indexOf('\r\n\r\n');
  const [statusLine = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const headers = new Headers();
  for (const line of lines) {
    const colon = line.indexOf(':');
    headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  const text = bytes.subarray(end + 4).toString('utf8');
  return {
    status: Number(statusLine.split(' ')[1]),
    headers,
    text,
    body: text.startsWith('{') ? JSON.parse(text) : null,
  };
}
