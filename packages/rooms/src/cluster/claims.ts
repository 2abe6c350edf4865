/** A claim whose claimant is never heard of again stands no longer than this. */
const LIFETIME_MS = 10_000;

interface Claim {
  claimant: string;
  /** Where the room is by now; undefined while it is being created. */
  owner?: string;
  until: number;
}

/**
 * The ids that this member, as their home, has given away and whose rooms are not announced yet. Of two that ask for one
 * id at the same moment, one gets it.
 */
export class Claims {
  readonly #now: () => number;
  readonly #claims = new Map<string, Claim>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** `claimant` is unique per creation, so that asking again after a lost answer is no conflict. */
  claim(roomId: string, claimant: string): boolean {
    const holder = this.holder(roomId);
    if (holder && holder.claimant !== claimant) return false;
    this.#claims.set(roomId, { claimant, until: this.#now() + LIFETIME_MS });
    return true;
  }

  holder(roomId: string): Readonly<Claim> | undefined {
    const now = this.#now();
    for (const [id, { until }] of this.#claims) if (until <= now) this.#claims.delete(id);
    return this.#claims.get(roomId);
  }

  /** The room has come to be, and its announcement may still be on its way here. */
  settle(roomId: string, claimant: string, owner: string): void {
    const claim = this.#claims.get(roomId);
    if (claim?.claimant === claimant) claim.owner = owner;
  }

  release(roomId: string, claimant: string): void {
    if (this.#claims.get(roomId)?.claimant === claimant) this.#claims.delete(roomId);
  }
}
