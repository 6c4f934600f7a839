/** What a check came to. What was not looked at is never called anything better than that. */
export type Status = 'ok' | 'failed' | 'not checked';

export type Verdict = 'ok' | 'failed' | 'incomplete';

/** Enough to see what is wrong; the count says how much more there is. */
const MAX_FINDINGS = 20;

/** One thing that is looked at, in one place or in a million of them. */
export class Check {
  private good = 0;
  private bad = 0;
  private gaps = 0;
  private readonly findings: { readonly status: Status; readonly what: string }[] = [];

  constructor(
    readonly name: string,
    private readonly unit = '',
  ) {}

  ok(): void {
    this.good++;
  }

  failed(what: string): void {
    this.bad++;
    this.note('failed', what);
  }

  notChecked(what: string): void {
    this.gaps++;
    this.note('not checked', what);
  }

  /** Ok if nothing is amiss, else what is. */
  ruledBy(faults: readonly string[]): void {
    if (faults.length === 0) this.ok();
    else this.failed(faults.join('; '));
  }

  /** A check that met nothing to look at has not been made. */
  get status(): Status {
    if (this.bad > 0) return 'failed';
    return this.gaps > 0 || this.good === 0 ? 'not checked' : 'ok';
  }

  toJSON(): object {
    const { name, status, good: ok, bad: failed, gaps: notChecked, findings } = this;
    return { name, status, ok, failed, notChecked, findings };
  }

  toString(): string {
    const counts = [
      [this.good, 'ok'],
      [this.bad, 'failed'],
      [this.gaps, 'not checked'],
    ] as const;
    const told = counts.flatMap(([count, what]) => (count > 0 ? [`${count.toLocaleString('en')} ${what}`] : []));
    const detail = this.unit === '' ? '' : `${this.unit}: ${told.join(', ') || 'none'}`;
    const more = this.bad + this.gaps - this.findings.length;
    const lines = this.findings.map(({ status, what }) => `    ${status}: ${what}`);
    return [
      `${this.status.padEnd(12)} ${this.name.padEnd(12)} ${detail}`.trimEnd(),
      ...lines,
      ...(more > 0 ? [`    and ${more.toLocaleString('en')} more`] : []),
    ].join('\n');
  }

  /** What failed must not be crowded out by what was not there to be looked at. */
  private note(status: Status, what: string): void {
    if (this.findings.filter((finding) => finding.status === status).length < MAX_FINDINGS)
      this.findings.push({ status, what });
  }
}

export function verdictOf(checks: readonly Check[]): Verdict {
  if (checks.some(({ status }) => status === 'failed')) return 'failed';
  return checks.length > 0 && checks.every(({ status }) => status === 'ok') ? 'ok' : 'incomplete';
}
