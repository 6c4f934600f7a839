/** The parameters of a statement, numbered in the order in which they are added. The first, `$1`, is the tenant. */
export class Parameters {
  readonly values: unknown[];

  constructor(readonly tenant: string) {
    this.values = [tenant];
  }

  /** Adds a value and gives the placeholder that stands for it. */
  add(value: unknown): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }
}
