/** A picture decoder, as the budget sees it. */
export interface BudgetHolder {
  /** Publisher of the pictures. */
  readonly origin: string;
  /** Called after the budget has revoked the decoder's share: frees its memory. */
  giveUp(): void;
}

/**
 * Memory budget for all decoders of one process. When it is used up, the publisher with the most memory loses a decoder
 * to a publisher that will have less, so one publisher's many or large tracks cannot crowd out the others.
 */
export class PictureBudget {
  readonly limitBytes: number;
  readonly #shares = new Map<BudgetHolder, number>();
  #sum = 0;

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  /** Bytes reserved by all decoders. */
  get bytes(): number {
    return this.#sum;
  }

  /**
   * Changes a decoder's share to `bytes`. Returns false and leaves the share unchanged when the new one does not fit.
   */
  reserve(holder: BudgetHolder, bytes: number): boolean {
    const grown = bytes - (this.#shares.get(holder) ?? 0);
    const victims = this.#victims(holder, this.#sum + grown - this.limitBytes, this.#bytesOf(holder.origin) + grown);
    if (victims === undefined) return false;
    for (const victim of victims) {
      this.release(victim);
      victim.giveUp();
    }
    this.#shares.set(holder, bytes);
    this.#sum += grown;

    return true;
  }

  release(holder: BudgetHolder): void {
    this.#sum -= this.#shares.get(holder) ?? 0;
    this.#shares.delete(holder);
  }

  #bytesOf(origin: string): number {
    let sum = 0;
    for (const [holder, bytes] of this.#shares) if (holder.origin === origin) sum += bytes;

    return sum;
  }

  /**
   * Returns the holders to evict to free `missing` bytes for a publisher that will have `wanted`; undefined when that
   * is impossible.
   */
  #victims(asking: BudgetHolder, missing: number, wanted: number): BudgetHolder[] | undefined {
    const victims: BudgetHolder[] = [];
    if (missing <= 0) return victims;
    const sums = new Map<string, number>();
    for (const [{ origin }, bytes] of this.#shares) sums.set(origin, (sums.get(origin) ?? 0) + bytes);
    sums.delete(asking.origin);
    const largestFirst = [...this.#shares].toSorted(([, a], [, b]) => b - a);
    for (let freed = 0; freed < missing; ) {
      const [origin, most] = [...sums].reduce((a, b) => (b[1] > a[1] ? b : a), ['', 0]);
      if (most <= wanted) return undefined;
      const [victim, bytes] = largestFirst.find(([holder]) => holder.origin === origin && !victims.includes(holder))!;
      victims.push(victim);
      sums.set(origin, most - bytes);
      freed += bytes;
    }

    return victims;
  }
}
