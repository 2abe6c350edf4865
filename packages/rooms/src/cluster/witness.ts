/** How long an owner without a link must have been silent before a member votes against it, in milliseconds. */
export const SILENT_MS = 3_000;
/** The same for an owner whose link stands: a frozen process, or a dead machine whose link has not timed out. */
export const FROZEN_MS = 5_000;

interface OwnerRecord {
  /** When the owner was last heard, by the awake clock. */
  heardAt: number;
  /** Standbys that this member has voted for, each with the number of its latest vote. */
  readonly votes: Map<string, number>;
}

/** A vote for a standby that counts until the owner has heard from that standby again. */
export interface GivenVote {
  standby: string;
  /** Distinguishes the votes of one member. */
  number: number;
}

/** Owners remembered; the rest count as never heard. */
const MAX_OWNERS = 10_000;

/**
 * Judges as a member which owners are alive. An owner may act as long as enough members have answered its latest pulses
 * (`Lease`), so a member that has just heard an owner must not vote against it. Times are those of a clock that stops
 * with the process: what arrived during a pause is still unread.
 */
export class Witness {
  readonly #owners = new Map<string, OwnerRecord>();
  /** Start of this process: an owner that has never been heard has been silent since then. */
  readonly #since: number;
  #given = 0;

  constructor(nowMs: number) {
    this.#since = nowMs;
  }

  /** Records a link to a member, a sign of life. */
  linked(node: string, now: number): void {
    this.#record(node).heardAt = now;
  }

  /** Forgets a process that has ended. */
  ended(node: string): void {
    this.#owners.delete(node);
  }

  /**
   * Records a pulse of an owner and returns the votes against it. `settled`: numbers of votes whose standby has
   * answered the owner since, without having taken its rooms; they are over.
   */
  pulse(owner: string, settled: readonly number[], now: number): GivenVote[] {
    const { votes } = this.#record(owner);
    this.#record(owner).heardAt = now;
    const over = new Set(settled);
    for (const [standby, number] of votes) if (over.has(number)) votes.delete(standby);

    return Array.from(votes, ([standby, number]) => ({ standby, number }));
  }

  /** Returns when the owner was last heard. */
  heardAt(owner: string): number {
    return this.#owners.get(owner)?.heardAt ?? this.#since;
  }

  /** Returns whether the owner has been silent for so long that this member votes against it. */
  isSilent(owner: string, { now, linked }: { now: number; linked: boolean }): boolean {
    return now - this.heardAt(owner) >= (linked ? FROZEN_MS : SILENT_MS);
  }

  /** Records a vote for the standby, as which this node does not support the owner until both have met. */
  vote(owner: string, standby: string): void {
    this.#given += 1;
    this.#record(owner).votes.set(standby, this.#given);
  }

  /** Ends a vote for a standby that has got too few. */
  unvote(owner: string, standby: string): void {
    this.#owners.get(owner)?.votes.delete(standby);
  }

  #record(owner: string): OwnerRecord {
    let record = this.#owners.get(owner);
    if (record === undefined) {
      if (this.#owners.size >= MAX_OWNERS) this.#owners.delete(this.#owners.keys().next().value as string);
      record = { heardAt: this.#since, votes: new Map() };
      this.#owners.set(owner, record);
    }

    return record;
  }
}
