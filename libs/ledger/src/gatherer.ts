interface Waiting<T, R> {
  readonly item: T;
  readonly resolve: (result: R) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Sends what arrives while statements are under way together, in the next one: under load, a round trip, a transaction
 * and a flush to the disk are shared. There is no timer: without load nobody waits for company.
 */
export class Gatherer<T, R> {
  private readonly waiting: Waiting<T, R>[] = [];
  private underWay = 0;

  /**
   * @param mostUnderWay how many statements may be under way at once
   * @param mostTogether how many items a statement may carry
   * @param send gives a result for each item, in their order
   */
  constructor(
    private readonly mostUnderWay: number,
    private readonly mostTogether: number,
    private readonly send: (items: readonly T[]) => Promise<readonly R[]>,
  ) {}

  add(item: T): Promise<R> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ item, resolve, reject });
      this.sendNext();
    });
  }

  /** Whether nothing is under way and nobody waits. */
  isIdle(): boolean {
    return this.underWay === 0 && this.waiting.length === 0;
  }

  private sendNext(): void {
    if (this.underWay >= this.mostUnderWay || this.waiting.length === 0) return;
    const together = this.waiting.splice(0, this.mostTogether);
    this.underWay += 1;
    void this.settle(together).finally(() => {
      this.underWay -= 1;
      this.sendNext();
    });
  }

  private async settle(together: readonly Waiting<T, R>[]): Promise<void> {
    try {
      const results = await this.send(together.map(({ item }) => item));
      for (const [index, { resolve, reject }] of together.entries()) {
        const result = results[index];
        if (result === undefined) reject(new Error('An item was left without a result'));
        else resolve(result);
      }
    } catch (error) {
      for (const { reject } of together) reject(error);
    }
  }
}
