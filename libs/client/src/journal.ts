import { sha256 } from './key.js';
import { isMembers, jsonOf, membersOf, textOf } from './members.js';
import type { Registration } from './request.js';
import type { Store } from './store.js';

/** How a lease ended: the body to be posted to the decision's route of that name. */
export interface Report {
  readonly route: 'completion' | 'failure';
  readonly body: string;
}

/** A lease under which the effect was begun. Whoever made the record is the only one who runs under the lease. */
export interface Begun {
  /** Its name in the store. */
  readonly name: string;
  readonly key: string;
  readonly decisionId: string;
  /** Null until the effect has ended. If whoever began is dead, nobody knows whether the effect happened. */
  readonly report: Report | null;
}

/** What is known of a registration when it begins: the bytes to send, and what earlier lives have left. */
export interface Opened {
  readonly body: string;
  readonly begun: readonly Begun[];
}

/**
 * The client's memory across crashes, in a {@link Store}. Two kinds of record:
 *
 * - `<id>`: the request, made before the first send and never changed;
 * - `<id>.<hash of the lease token>`: made before `run` is called under that lease, and replaced once by its outcome.
 *
 * A record of the second kind is only ever written by whoever made it, so no process can overwrite another's outcome.
 */
export class Journal {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Keeps the request, unless an earlier life or another process has; then its bytes are the ones to send. */
  async open(registration: Registration): Promise<Opened> {
    const { id, key, body } = registration;
    if (await this.#store.create(id, JSON.stringify({ v: 1, key, body }))) return { body, begun: [] };
    const text = await this.#store.read(id);
    // It may have been finished, and removed, between the two calls.
    if (text === null) return this.open(registration);
    const kept = jsonOf(text);
    const keptBody = isMembers(kept) ? textOf(kept, 'body') : null;
    if (keptBody === null) throw unreadable(id);
    return { body: keptBody, begun: await this.begun(id) };
  }

  /** Takes the right to run under a lease; null if it has been taken, by the living or by the dead. */
  async begin(id: string, lease: { key: string; decisionId: string; token: string }): Promise<Begun | null> {
    const name = `${id}.${sha256(lease.token).toString('hex').slice(0, 32)}`;
    const begun: Begun = { name, key: lease.key, decisionId: lease.decisionId, report: null };
    return (await this.#store.create(name, textOfBegun(begun))) ? begun : null;
  }

  /** Keeps an outcome, before it is reported. */
  async end(begun: Begun, report: Report): Promise<void> {
    await this.#store.replace(begun.name, textOfBegun({ ...begun, report }));
  }

  /** What was begun for a registration and not yet forgotten. */
  async begun(id: string): Promise<Begun[]> {
    const names = await this.#store.list(`${id}.`);
    const records = await Promise.all(names.map((name) => this.#readBegun(name)));
    return records.filter((record) => record !== null);
  }

  /** The registrations that something is kept of. */
  async ids(): Promise<string[]> {
    const names = await this.#store.list('');
    return [...new Set(names.map((name) => name.slice(0, 64)))];
  }

  /** The lease is over without an outcome, or was never used. */
  async forget(begun: Begun): Promise<void> {
    await this.#store.remove(begun.name);
  }

  /** The service has recorded nothing for the request, or knows how it ended: the bytes are needed no more. */
  async close(id: string): Promise<void> {
    await this.#store.remove(id);
  }

  /**
   * The outcome is recorded: nothing that any lease has left can matter. The request goes last, so that what a crash leaves
   * here can be found by it.
   */
  async finish(id: string): Promise<void> {
    for (const name of await this.#store.list(`${id}.`)) await this.#store.remove(name);
    await this.close(id);
  }

  async #readBegun(name: string): Promise<Begun | null> {
    const text = await this.#store.read(name);
    if (text === null) return null;
    const kept = jsonOf(text);
    if (!isMembers(kept)) throw unreadable(name);
    const key = textOf(kept, 'key');
    const decisionId = textOf(kept, 'decisionId');
    const report = membersOf(kept, 'report');
    const route = report?.['route'];
    const body = report === null ? null : textOf(report, 'body');
    if (key === null || decisionId === null) throw unreadable(name);
    if (report === null) return { name, key, decisionId, report: null };
    if ((route !== 'completion' && route !== 'failure') || body === null) throw unreadable(name);
    return { name, key, decisionId, report: { route, body } };
  }
}

function textOfBegun({ key, decisionId, report }: Begun): string {
  return JSON.stringify({ v: 1, key, decisionId, report });
}

/** To go on as if nothing had been kept could run an effect again. */
function unreadable(name: string): Error {
  return new Error(`The store's record ${name} cannot be read. Look at it before anything is decided again.`);
}
