import { isMajority, type Voter } from './standby-states.js';
import { type PulseAnswer, voteKey } from './witness.js';

/**
 * How long an answer to a pulse supports the owner, from the sending of the pulse on. Shorter than a member waits
 * before it votes against an owner that it has heard (`SILENT_MS`).
 */
export const LEASE_MS = 2_500;

/** A process of a node that may take a room over. */
export interface Guard extends Voter {
  /** The memberships that the guard may count votes of: the one that it has confirmed, and those sent since. */
  memberships: readonly (readonly Voter[])[];
}

/** Ended processes whose last answers are remembered. */
const MAX_ENDED = 1_000;

interface Answer {
  process: string;
  /** When the pulse that it answers was sent. */
  sentAt: number;
  /** The member's votes against this node by standby, each with the time at which this node first heard of it. */
  votes: ReadonlyMap<string, Voter & { number: number; since: number }>;
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
  /** The last answers of processes that ended while those counted: they can have voted for nobody since. */
  readonly #ended = new Map<string, { readonly node: string; readonly last: Answer; isSure: boolean }>();

  constructor(self: string) {
    this.#self = self;
  }

  /**
   * Records a member's answer, which arrives at `now`, to the pulse sent at `sentAt`. Returns false if that to a later
   * one has arrived before.
   */
  answered(
    node: string,
    { process, votes }: Pick<PulseAnswer, 'process' | 'votes'>,
    { sentAt, now }: { sentAt: number; now: number },
  ): boolean {
    const last = this.#answers.get(node);
    if (last !== undefined && last.sentAt > sentAt) return false;
    const known = last?.process === process ? last.votes : undefined;
    const heard = votes.map((vote) => {
      const key = voteKey(vote.standby, vote.process);
      const before = known?.get(key);
      const since = before?.number === vote.number ? before.since : now;
      return [key, { node: vote.standby, process: vote.process, number: vote.number, since }] as const;
    });
    this.#answers.set(node, { process, sentAt, votes: new Map(heard) });
    this.#gone.delete(node);
    this.#ended.delete(voteKey(node, process));

    return true;
  }

  /**
   * Records that the process of a member has ended, as this node has heard by `now`. `isSure`: another process has its
   * name; otherwise a port mapper says so, perhaps the wrong one.
   */
  gone(node: string, { now, isSure }: { now: number; isSure: boolean }): void {
    const last = this.#answers.get(node);
    this.#gone.add(node);
    this.#answers.delete(node);
    if (last !== undefined && now - last.sentAt < LEASE_MS) {
      if (this.#ended.size >= MAX_ENDED) this.#ended.delete(this.#ended.keys().next().value as string);
      this.#ended.set(voteKey(node, last.process), { node, last, isSure });
    }
    if (isSure) for (const ended of this.#ended.values()) if (ended.node === node) ended.isSure = true;
  }

  isGone(node: string): boolean {
    return this.#gone.has(node);
  }

  /** Returns the process of a member that has answered. */
  processOf(node: string): string | undefined {
    return this.#answers.get(node)?.process;
  }

  /** Returns whether the member has just answered, and is not about to take rooms of this node over. */
  isMet(node: string, now: number): boolean {
    const process = this.processOf(node);
    return process !== undefined && this.#supports({ node, process }, { node, process }, now);
  }

  /** Returns the numbers of the member's votes whose standby has answered a later pulse without voting for itself. */
  settledVotes(member: string): number[] {
    const votes = this.#answers.get(member)?.votes ?? new Map<string, Voter & { number: number; since: number }>();
    return [...votes].flatMap(([key, { node, process, number, since }]) => {
      const answer = this.#answers.get(node);
      // The next process of the standby does not know whether the room was taken over.
      const isSettled = answer?.process === process && answer.sentAt > since && !answer.votes.has(key);
      return isSettled ? [number] : [];
    });
  }

  /** Returns whether none of these nodes can take the room over now. */
  holds(guards: Iterable<Guard>, now: number): boolean {
    for (const guard of guards) if (this.canWin(guard, now)) return false;

    return true;
  }

  /** Returns whether the guard may have got enough votes, as far as this node knows. */
  canWin(guard: Guard, now: number): boolean {
    if (this.#supports(guard, guard, now)) return false;
    const mayVote = (member: Voter): boolean => member.node !== this.#self && !this.#supports(member, guard, now);

    return guard.memberships.some((members) => isMajority(members.filter(mayVote).length, members));
  }

  /** Returns whether that process of the member has just answered, and has not voted for the standby. */
  #supports(member: Voter, standby: Voter, now: number): boolean {
    const key = voteKey(standby.node, standby.process);
    const ended = this.#ended.get(voteKey(member.node, member.process));
    if (ended?.isSure === true) return !ended.last.votes.has(key);
    const answer = this.#answers.get(member.node);
    if (answer?.process !== member.process || now - answer.sentAt >= LEASE_MS) return false;

    return !answer.votes.has(key);
  }
}
