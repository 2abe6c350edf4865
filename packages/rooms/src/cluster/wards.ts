import type { OwnedRoom } from './directory.js';
import type { Guard } from './lease.js';
import { type Candidacy, isMajorityOfOthers, sameVoters, type Voter } from './standby-states.js';

/** Memberships that may be on their way to a standby; further changes wait until it has confirmed one. */
const MAX_SENT = 8;

/** A process that may take a room over, as long as it has not confirmed that it has forgotten the room. */
interface WardGuard extends Guard {
  readonly epoch: number;
  /** The membership of the latest state that it has confirmed, and of every state sent since: any may have arrived. */
  memberships: (readonly Voter[])[];
  /** When the owner heard of the end of the process, which may have taken the room over before. */
  endedAt: number | undefined;
  /** Members that deny the guard their votes for good, each with its process. */
  readonly revokedBy: Map<string, string>;
}

type GuardTest = (guard: Readonly<WardGuard>) => boolean;

/** A room of this node that has, or is to have, a standby. */
export class Ward {
  /** Number of the last epoch given to a standby; that of the room if none has been given. */
  handed: number;
  /** The room has changed since its state was last sent. */
  isDirty = true;
  /** A state is on its way. */
  isBusy = false;
  /** The room is about to move: it gets no standby meanwhile. */
  isPaused = false;
  /** The room has ended or moved, and its guards do not all know. */
  isOver = false;
  /** Another node has taken the room over. */
  isTaken = false;
  /** Clients are told the address of a standby. */
  isNamed = false;
  /** Set while former standbys are asked to forget the room. */
  dismissing?: Promise<void>;
  /** Why the room has no standby, as last logged. */
  why: string | undefined;
  /** The latest state that the standby has confirmed. */
  text: string | undefined;
  /** The node that is kept up to date; undefined while the room has none. */
  #current: WardGuard | undefined;
  /** Every process that may hold a state of the room. */
  #guards: WardGuard[] = [];

  /**
   * `step`: returns a random number from 2 on. Owners that cannot hear each other must not choose equal epochs, and the
   * next epoch is that of the room once it has moved in order.
   */
  constructor(
    public room: OwnedRoom,
    readonly step: () => number,
  ) {
    this.handed = room.epoch ?? 0;
  }

  get roomId(): string {
    return this.room.roomId;
  }

  get epoch(): number {
    return this.room.epoch ?? 0;
  }

  get standby(): string | undefined {
    return this.#current?.node;
  }

  /** Gives the room an epoch above all that were given to standbys. Returns false if it has one. */
  raise(): boolean {
    if (this.handed === this.epoch) return false;
    this.handed += this.step();
    this.room = { ...this.room, epoch: this.handed };

    return true;
  }

  /** Makes a process the standby, under an epoch that no other has been given. The former ones must be powerless. */
  appoint({ node, process }: Voter): void {
    this.handed += this.step();
    this.isDirty = true;
    this.text = undefined;
    const guard = { node, process, epoch: this.handed, memberships: [], endedAt: undefined, revokedBy: new Map() };
    this.#current = guard;
    this.#guards.push(guard);
  }

  /** Lets the room have no standby for now. The former one stays a guard until it is known to be none. */
  dismiss(): void {
    this.#current = undefined;
  }

  /** The membership that the standby was last sent. */
  get sent(): readonly Voter[] | undefined {
    return this.#current?.memberships.at(-1);
  }

  /** Records that a state is sent to the standby. Returns what is sent: with many unconfirmed, the last membership. */
  sending(latest: readonly Voter[]): { epoch: number; to: string; members: readonly Voter[] } | undefined {
    const guard = this.#current;
    if (guard === undefined) return undefined;
    const { memberships, epoch, process: to } = guard;
    if (memberships.length < MAX_SENT && !sameVoters(memberships.at(-1), latest)) memberships.push(latest);

    return { epoch, to, members: memberships.at(-1) ?? latest };
  }

  /** Records that the standby of this epoch holds a state that was sent with this membership, and no earlier one. */
  confirmed(epoch: number, members: readonly Voter[]): void {
    const guard = this.#guards.find((each) => each.epoch === epoch);
    if (guard === undefined) return;
    guard.memberships = guard.memberships.slice(Math.max(0, guard.memberships.indexOf(members)));
    this.forgotten(guard, epoch - 1);
  }

  /** Records that a process no longer holds the room under this epoch or an earlier one. */
  forgotten({ node, process }: Voter, epoch: number): void {
    this.#drop((guard) => guard.node === node && guard.process === process && guard.epoch <= epoch);
  }

  /** Records that the processes of a node but this one have ended, which may have taken the room over. */
  ended(node: string, { now, process }: { now: number; process?: string }): void {
    for (const guard of this.#guards) if (guard.node === node && guard.process !== process) guard.endedAt ??= now;
    if (this.#current?.endedAt !== undefined) this.#current = undefined;
  }

  /**
   * Forgets guards that cannot have taken the room over and never will: they have ended, or been lost for so long that
   * they have forgotten the room. `isLong`: the room that an ended one may have taken over would have been heard of.
   */
  settle(canWin: (guard: Guard) => boolean, { isLost, isLong }: { isLost: GuardTest; isLong: GuardTest }): void {
    const isOver = (guard: WardGuard): boolean => this.#isPowerless(guard) || !canWin(guard);
    this.#drop((guard) => isLong(guard) || ((guard.endedAt !== undefined || isLost(guard)) && isOver(guard)));
  }

  /** Processes that are to forget the room, each with the epoch that it was given. */
  get dismissed(): readonly Readonly<Voter & { epoch: number }>[] {
    return this.#dismissed;
  }

  get #dismissed(): WardGuard[] {
    const isDismissed = (guard: WardGuard): boolean => this.isOver || this.isPaused || guard !== this.#current;

    return this.#guards.filter((guard) => guard.endedAt === undefined && isDismissed(guard));
  }

  /** What a member is to deny its votes to, and has not confirmed yet. */
  revocationsFor(member: string, process: string | undefined): Candidacy[] {
    const { roomId, createdAt } = this.room;
    const untold = this.#dismissed.filter(
      ({ revokedBy }) => process === undefined || revokedBy.get(member) !== process,
    );
    const epochs = untold.map(({ epoch }) => epoch);

    return epochs.length === 0 ? [] : [{ roomId, createdAt, epoch: Math.max(...epochs) }];
  }

  /** Records that a member denies its votes under this epoch and earlier ones. `hasVoted`: for that guard before. */
  revoked(member: Voter, epoch: number, hasVoted: (guard: Voter) => boolean): void {
    for (const guard of this.#guards)
      if (guard.epoch <= epoch && !hasVoted(guard)) guard.revokedBy.set(member.node, member.process);
  }

  /** Guards that may take the room over, now or once this node is lost. */
  get guards(): readonly Readonly<WardGuard>[] {
    return this.#guards.filter((guard) => guard === this.#current || !this.#isPowerless(guard));
  }

  /** Returns whether no former standby may take the room over, now or once this node is lost. */
  get areFormerPowerless(): boolean {
    return this.#guards.every((guard) => guard === this.#current || this.#isPowerless(guard));
  }

  get isGuarded(): boolean {
    return this.#guards.length > 0;
  }

  /** With proof that the owner has ended, a guard needs over half of the other members, and always its own vote. */
  #isPowerless({ node, process, memberships, revokedBy }: WardGuard): boolean {
    const mayVote = (voter: Voter): boolean => revokedBy.get(voter.node) !== voter.process;
    if (!mayVote({ node, process })) return true;

    // The owner, which is one of the members, does not vote.
    return memberships.every((members) => !isMajorityOfOthers(members.filter(mayVote).length - 1, members));
  }

  #drop(isOver: (guard: WardGuard) => boolean): void {
    this.#guards = this.#guards.filter((guard) => !isOver(guard));
    if (this.#current !== undefined && !this.#guards.includes(this.#current)) this.#current = undefined;
  }
}
