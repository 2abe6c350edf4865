import { createHash } from 'node:crypto';
import type { Clock } from '@bloom/time';

/** Lifetime of a claim whose claimant has disappeared. */
const LIFETIME_MS = 10_000;
/** Maximum number of concurrent claims; further ids are refused. */
const MAX_CLAIMS = 10_000;

interface Claim {
  claimant: string;
  /** The node that owns the room; undefined while the room is being created. */
  owner?: string;
  until: number;
}

/**
 * Room ids that this member has granted as their home and that no owner has announced yet. When two creations claim the
 * same id at once, only one is granted.
 */
export class Claims {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #claims = new Map<string, Claim>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** Grants the id or returns false. `claimant` is unique per creation, so a repeated claim is not a conflict. */
  claim(roomId: string, claimant: string): boolean {
    const holder = this.holder(roomId);
    if (holder !== undefined && holder.claimant !== claimant) return false;
    this.#claims.delete(roomId);
    if (this.#claims.size >= MAX_CLAIMS) return false;
    this.#claims.set(roomId, { claimant, until: this.#clock.now() + LIFETIME_MS });
    return true;
  }

  holder(roomId: string): Readonly<Claim> | undefined {
    const now = this.#clock.now();
    // All claims have the same lifetime, so the oldest come first.
    for (const [id, { until }] of this.#claims) {
      if (until > now) break;
      this.#claims.delete(id);
    }
    return this.#claims.get(roomId);
  }

  /** Keeps the claim of an existing room whose announcement may not have arrived yet. */
  settle(roomId: string, claimant: string, owner: string): void {
    const claim = this.#claims.get(roomId);
    if (claim?.claimant === claimant) claim.owner = owner;
  }

  release(roomId: string, claimant: string): void {
    if (this.#claims.get(roomId)?.claimant === claimant) this.#claims.delete(roomId);
  }
}

/**
 * Returns the members in the order in which they decide about an id (rendezvous hashing). Nodes that see the same
 * members agree on the order, and a joining or leaving member moves only its own share of the ids.
 */
export function homesOf(id: string, members: readonly string[]): string[] {
  return members
    .map((member) => ({ member, weight: createHash('sha1').update(`${member}\0${id}`).digest('hex') }))
    .toSorted((a, b) => (a.weight < b.weight ? 1 : -1))
    .map(({ member }) => member);
}
