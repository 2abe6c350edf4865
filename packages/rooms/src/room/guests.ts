import { refusals, type Outcome } from '../outcome.js';
import type { InvitationUse } from '../room-service.js';
import type { CountedInvitation } from './room-snapshot.js';

/** Seconds after which an absent guest is removed. */
export const GUEST_AWAY_S = 60;
/** Invitations counted per room. Those without a limit are not counted. */
const MAX_COUNTED = 10_000;

/** Counts the uses of a room's invitations until they expire. */
export class Guests {
  readonly #used: Map<string, { count: number; expiresAt: number }>;

  /** `counted`: uses counted where the room ran before. */
  constructor(counted: readonly CountedInvitation[] = []) {
    this.#used = new Map(counted.map(({ id, count, expiresAt }) => [id, { count, expiresAt }]));
  }

  /** The uses counted so far. */
  get counted(): CountedInvitation[] {
    return Array.from(this.#used, ([id, { count, expiresAt }]) => ({ id, count, expiresAt }));
  }

  /**
   * Calls `admit` if the invitation has a use left, and counts it if the guest was admitted. `wallMs`: Unix
   * milliseconds.
   */
  admit<T>({ id, uses, expiresAt }: InvitationUse, wallMs: number, admit: () => Outcome<T>): Outcome<T> {
    if (uses === 0) return admit();
    const count = this.#used.get(id)?.count ?? 0;
    if (count >= uses) return refusals.invitationUsed();
    if (count === 0 && !this.#hasPlace(wallMs)) return refusals.invitationLimit(MAX_COUNTED);
    const admitted = admit();
    if (admitted.ok) this.#used.set(id, { count: count + 1, expiresAt });

    return admitted;
  }

  #hasPlace(wallMs: number): boolean {
    if (this.#used.size < MAX_COUNTED) return true;
    for (const [id, { expiresAt }] of this.#used) if (expiresAt <= wallMs) this.#used.delete(id);

    return this.#used.size < MAX_COUNTED;
  }
}
