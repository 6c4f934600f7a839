import { createServer, connect, type Server, type Socket } from 'node:net';
import { once } from 'node:events';

/**
 * What happens to the connection on which a message passes: it breaks before the message arrives; it breaks when the
 * answer is there, and the answer is lost; or the answer is held back while the connection stays.
 */
export type Mishap = 'break-before' | 'break-after' | 'hold-answer';

interface Trap {
  /** Texts that pass to the server on one connection, in this order; the last one springs the trap. */
  readonly texts: readonly string[];
  readonly mishap: Mishap;
  readonly spring: () => void;
}

/** A TCP relay in front of a server, in which the answer to a chosen message can be lost. */
export class Tap {
  private trap: Trap | null = null;
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    /** The same URL as the target's, with the relay's port. */
    readonly url: string,
  ) {}

  static async open(target: string): Promise<Tap> {
    const { hostname, port } = new URL(target);
    const server = createServer((client) => tap.relay(client, connect(Number(port), hostname)));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('The relay has no port');
    const url = new URL(target);
    url.host = `127.0.0.1:${address.port}`;
    const tap = new Tap(server, url.href.replace(/\/$/, ''));
    return tap;
  }

  /** Sets a trap for the next connection on which these texts pass to the server in turn. Comes back when it has sprung. */
  next(mishap: Mishap, ...texts: readonly string[]): Promise<void> {
    return new Promise((resolve) => {
      this.trap = { texts, mishap, spring: resolve };
    });
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private relay(client: Socket, server: Socket): void {
    let sprung: Trap | null = null;
    let isHeld = false;
    let passed: { trap: Trap | null; texts: number } = { trap: null, texts: 0 };
    /** Whether these bytes hold the last of the texts that the trap waits for on this connection. */
    const springs = (bytes: Buffer): boolean => {
      const { trap } = this;
      if (trap === null) return false;
      if (passed.trap !== trap) passed = { trap, texts: 0 };
      while (passed.texts < trap.texts.length && bytes.includes(trap.texts[passed.texts] ?? '')) passed.texts += 1;
      return passed.texts === trap.texts.length;
    };
    const breakBoth = (): void => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      this.sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', breakBoth);
      socket.on('close', () => {
        this.sockets.delete(socket);
        breakBoth();
      });
    }
    client.on('data', (bytes) => {
      if (this.trap !== null && springs(bytes)) {
        sprung = this.trap;
        this.trap = null;
        if (sprung.mishap === 'break-before') {
          breakBoth();
          return sprung.spring();
        }
      }
      return void server.write(bytes);
    });
    server.on('data', (bytes) => {
      if (isHeld) return;
      if (sprung === null) return void client.write(bytes);
      if (sprung.mishap === 'break-after') breakBoth();
      isHeld = true;
      sprung.spring();
    });
  }
}
