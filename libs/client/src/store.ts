/**
 * Where the client keeps what must outlive the process: the bytes of a request before they are first sent, and an outcome
 * before it is first reported. A few hundred bytes to a few hundred kilobytes each, gone again when the outcome is recorded.
 *
 * A store serves one ledger. Several processes may share it.
 */
export interface Store {
  /** The text, or null. */
  read(name: string): Promise<string | null>;
  /**
   * Puts the text, durably, if nothing has the name. MUST be atomic: of two callers at the same instant, in whatever process,
   * one gets true. Whoever gets true may run the effect.
   */
  create(name: string, text: string): Promise<boolean>;
  /** Puts the text, durably and whole, in the place of what is there. */
  replace(name: string, text: string): Promise<void>;
  /** Nothing happens if it is not there. It need not be durable. */
  remove(name: string): Promise<void>;
  /** The names that begin so, in any order. Names consist of lower-case hex digits and dots. */
  list(prefix: string): Promise<string[]>;
}

/** A store that lives as long as the process: for tests, and for actions that need no recovery after a crash. */
export function memoryStore(): Store {
  const texts = new Map<string, string>();
  return {
    async read(name) {
      return texts.get(name) ?? null;
    },
    async create(name, text) {
      if (texts.has(name)) return false;
      texts.set(name, text);
      return true;
    },
    async replace(name, text) {
      texts.set(name, text);
    },
    async remove(name) {
      texts.delete(name);
    },
    async list(prefix) {
      return [...texts.keys()].filter((name) => name.startsWith(prefix));
    },
  };
}
