/** So many failures in a row mean that the host is down, not that a call was unlucky. */
const FAILURES_TO_OPEN = 5;
/** A host that is only restarting is asked again soon; one that stays down less and less often. */
const FIRST_OPEN_MS = 1_000;
const LONGEST_OPEN_MS = 30_000;
/** While one call finds out whether the host is back, the others look again this much later: each look counts as a try. */
const PROBE_PAUSE_MS = 1_000;

interface Circuit {
  failures: number;
  openMs: number;
  openUntil: number;
  isProbing: boolean;
}

/** A circuit breaker for each host, so that calls to a dead one neither occupy the worker nor hold up the others. */
export class Breakers {
  private readonly circuits = new Map<string, Circuit>();

  constructor(private readonly now: () => number = () => performance.now()) {}

  /**
   * Whether a host may be called: null if so, else in how many milliseconds to ask again. While a circuit is half open,
   * the first to ask is let through. Whoever was let through MUST report.
   */
  admit(host: string): number | null {
    const circuit = this.circuits.get(host);
    if (circuit === undefined || circuit.failures < FAILURES_TO_OPEN) return null;
    const remaining = circuit.openUntil - this.now();
    if (remaining > 0) return remaining;
    if (circuit.isProbing) return PROBE_PAUSE_MS;
    circuit.isProbing = true;
    return null;
  }

  /** How the host was: it answered, it did not, or the call ended for a reason of our own and tells nothing. */
  report(host: string, seen: 'up' | 'down' | 'nothing'): void {
    if (seen === 'up') {
      this.circuits.delete(host);
      return;
    }
    const circuit = this.circuits.get(host) ?? { failures: 0, openMs: 0, openUntil: 0, isProbing: false };
    circuit.isProbing = false;
    this.circuits.set(host, circuit);
    if (seen === 'nothing') return;
    circuit.failures += 1;
    // Calls that were under way when it opened say nothing new.
    if (circuit.failures < FAILURES_TO_OPEN || circuit.openUntil > this.now()) return;
    circuit.openMs = circuit.openMs === 0 ? FIRST_OPEN_MS : Math.min(2 * circuit.openMs, LONGEST_OPEN_MS);
    circuit.openUntil = this.now() + circuit.openMs;
  }
}
