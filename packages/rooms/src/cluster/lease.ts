import { isMajority, mostVotes } from './standby-states.js';
import type { GivenVote } from './witness.js';

/**
 * How long an answer to a pulse supports the owner, from the sending of the pulse on. Shorter than a member waits
 * before it votes against an owner that it has heard (`SILENT_MS`).
 */
export const LEASE_MS = 2_500;

/** A node that may take a room over. */
export interface Guard {
  node: string;
  /** The memberships that the guard may count votes of: the one that it has confirmed, and those sent since. */
  memberships: readonly (readonly string[])[];
}

interface Answer {
  /** When the pulse that it answers was sent. */
  sentAt: number;
  /** The member's votes against this node by standby, each with the time at which this node first heard of it. */
  votes: ReadonlyMap<string, { number: number; since: number }>;
}

/**
 * Knows which members support this node as the owner of its rooms, by their answers to its pulses. A room may be acted
 * for while no standby of it can win: it has just answered itself, or too many other members support the owner. Times
 * are those of a clock that runs while the process is stopped, so that a thawed owner finds its lease expired.
 */
export class Lease {
  readonly #self: string;
  readonly #answers = new Map<string, Answer>();
  /** Members whose process has ended. */
  readonly #gone = new Set<string>();

  constructor(self: string) {
    this.#self = self;
  }

  /** Records a member's answer, which arrives at `now`, to the pulse sent at `sentAt`. */
  answered(node: string, votes: readonly GivenVote[], { sentAt, now }: { sentAt: number; now: number }): void {
    const last = this.#answers.get(node);
    if (last !== undefined && last.sentAt > sentAt) return;
    const heard = votes.map(({ standby, number }) => {
      const known = last?.votes.get(standby);
      return [standby, { number, since: known?.number === number ? known.since : now }] as const;
    });
    this.#answers.set(node, { sentAt, votes: new Map(heard) });
    this.#gone.delete(node);
  }

  /** Records that the process of a member has ended: it has forgotten all rooms, and is no standby. */
  gone(node: string): void {
    this.#gone.add(node);
    this.#answers.delete(node);
  }

  isGone(node: string): boolean {
    return this.#gone.has(node);
  }

  /** Returns whether the member has just answered, and is not about to take rooms of this node over. */
  isMet(node: string, now: number): boolean {
    return this.#supports(node, node, now);
  }

  /** Returns the numbers of the member's votes whose standby has answered a later pulse without voting for itself. */
  settledVotes(member: string): number[] {
    const votes = this.#answers.get(member)?.votes ?? [];
    return [...votes].flatMap(([standby, { number, since }]) => {
      const answer = this.#answers.get(standby);
      const isSettled = answer !== undefined && answer.sentAt > since && !answer.votes.has(standby);
      return isSettled ? [number] : [];
    });
  }

  /** Returns whether none of these nodes can take the room over now. */
  holds(guards: Iterable<Guard>, now: number): boolean {
    for (const { node, memberships } of guards) {
      if (this.#gone.has(node) || this.#supports(node, node, now)) continue;
      // A member whose process has ended may have voted before.
      const isAgainst = (member: string): boolean => member === this.#self || this.#supports(member, node, now);
      if (memberships.some((members) => isMajority(mostVotes(members, isAgainst), members))) return false;
    }

    return true;
  }

  /** Returns whether the member has just answered, and has not voted for the standby. */
  #supports(member: string, standby: string, now: number): boolean {
    const answer = this.#answers.get(member);

    return answer !== undefined && now - answer.sentAt < LEASE_MS && !answer.votes.has(standby);
  }
}
