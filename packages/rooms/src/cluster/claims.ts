/** A claim whose claimant is never heard of again stands no longer than this. */
const LIFETIME_MS = 10_000;

/**
 * The ids that this member, as their home, has given away and whose rooms are not announced yet. Of two that ask for one
 * id at the same moment, one gets it.
 */
export class Claims {
  readonly #now: () => number;
  readonly #claims = new Map<string, { claimant: string; until: number }>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** `claimant` is unique per creation, so that asking again after a lost answer is no conflict. */
  claim(roomId: string, claimant: string): boolean {
    const now = this.#now();
    for (const [id, { until }] of this.#claims) if (until <= now) this.#claims.delete(id);
    const holder = this.#claims.get(roomId);
    if (holder && holder.claimant !== claimant) return false;
    this.#claims.set(roomId, { claimant, until: now + LIFETIME_MS });
    return true;
  }

  release(roomId: string, claimant: string): void {
    if (this.#claims.get(roomId)?.claimant === claimant) this.#claims.delete(roomId);
  }
}
