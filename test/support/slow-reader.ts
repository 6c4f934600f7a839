import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from './client.js';

/** An answer that is read a few kilobytes at a time, for as long as one likes. */
export interface SlowReader {
  readonly status: number;
  /** Reads so many bytes, a few at a time, with pauses in between. */
  read(bytes: number): Promise<void>;
  /** Reads the rest at once; gives all that has come, and whether the answer came to its end. */
  rest(): Promise<{ text: string; isWhole: boolean }>;
  /** Hangs up. */
  leave(): void;
}

const SIP_BYTES = 8 * 1024;
const SIP_PAUSE_MS = 20;

export async function readSlowly(client: Client, path: string): Promise<SlowReader> {
  const request = get(client.url + path, { agent: false, headers: { authorization: `Bearer ${client.token}` } });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  // An answer that is broken off is what some tests are about.
  response.on('error', () => undefined);
  const chunks: Buffer[] = [];
  return {
    status: response.statusCode ?? 0,
    async read(bytes) {
      for (let got = 0; got < bytes && !response.destroyed; await sleep(SIP_PAUSE_MS)) {
        const chunk: Buffer | null = response.read(SIP_BYTES) ?? response.read();
        if (chunk === null) continue;
        chunks.push(chunk);
        got += chunk.length;
      }
    },
    async rest() {
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      // An error comes before it where the answer is broken off, and `once` would throw that.
      if (!response.closed) await new Promise((resolve) => response.once('close', resolve));
      return { text: Buffer.concat(chunks).toString(), isWhole: response.complete };
    },
    leave: () => void response.destroy(),
  };
}
