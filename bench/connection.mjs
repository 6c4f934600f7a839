import { connect } from 'node:net';

const HEAD_END = '\r\n\r\n';

/**
 * A keep-alive connection that has one HTTP/1.1 request under way at a time. It reads no more of an answer than where it
 * ends, its status, and whether it is a replay: a client that parsed all of it would take the processor away from what is
 * measured. Answers must carry a Content-Length.
 */
export class Connection {
  #socket;
  #received = '';
  #answered;

  static async open(url) {
    const { hostname, port } = new URL(url);
    const connection = new Connection();
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    connection.#listen(socket);
    return connection;
  }

  /** Sends a whole request as text. */
  send(text) {
    return new Promise((resolve, reject) => {
      this.#answered = { resolve, reject };
      this.#socket.write(text, 'latin1');
    });
  }

  close() {
    this.#answered = undefined;
    this.#socket.destroy();
  }

  #listen(socket) {
    this.#socket = socket;
    socket.setEncoding('latin1');
    socket.on('data', (chunk) => {
      this.#received = this.#received === '' ? chunk : this.#received + chunk;
      this.#finish();
    });
    const fail = (error) => this.#answered?.reject(error ?? new Error('The service closed a connection'));
    socket.on('error', fail).on('close', () => fail());
  }

  #finish() {
    const headEnd = this.#received.indexOf(HEAD_END);
    if (headEnd < 0) return;
    const head = this.#received.slice(0, headEnd).toLowerCase();
    const [, length] = /\r\ncontent-length: (\d+)/.exec(head) ?? [];
    if (length === undefined) throw new Error(`An answer without a Content-Length: ${head}`);
    const end = headEnd + HEAD_END.length + Number(length);
    if (this.#received.length < end) return;
    const text = this.#received;
    this.#received = '';
    this.#answered.resolve({
      status: Number(text.slice(9, 12)),
      isReplay: head.includes('\r\nidempotent-replayed: true'),
      text,
    });
  }
}
