import type { OwnedRoom } from './directory.js';
import type { Guard } from './lease.js';

/** A node that may take a room over, as long as it has not confirmed that it has forgotten the room. */
interface WardGuard {
  readonly epoch: number;
  /** The membership of the latest state that it has confirmed. */
  confirmed: readonly string[] | undefined;
  /** The membership of the latest state sent. */
  sent: readonly string[];
}

/** A room of this node that has, or is to have, a standby. */
export class Ward {
  /** Number of the last epoch given to a standby; that of the room if none has been given. */
  handed: number;
  /** The node that is kept up to date; undefined while the room has none. */
  standby: string | undefined;
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
  /** Set while former standbys are asked to forget the room. */
  dismissing?: Promise<void>;
  /** Why the room has no standby, as last logged. */
  why: string | undefined;
  /** The latest state that the standby has confirmed. */
  text: string | undefined;
  /** Every node that may hold a state of the room. */
  readonly #guards = new Map<string, WardGuard>();

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

  /** Gives the room an epoch above all that were given to standbys. Returns false if it has one. */
  raise(): boolean {
    if (this.handed === this.epoch) return false;
    this.handed += this.step();
    this.room = { ...this.room, epoch: this.handed };

    return true;
  }

  /** Makes a node the standby, under an epoch that no other node has been given. */
  appoint(node: string): void {
    this.handed += this.step();
    this.standby = node;
    this.isDirty = true;
    this.text = undefined;
    this.#guards.set(node, { epoch: this.handed, confirmed: undefined, sent: [] });
  }

  /** Records that a state with this membership is sent to the standby. Returns the epoch given to it. */
  sending(members: readonly string[]): number {
    const guard = this.#guards.get(this.standby ?? '');
    if (guard !== undefined) guard.sent = members;

    return guard?.epoch ?? this.handed;
  }

  confirmed(node: string, members: readonly string[]): void {
    const guard = this.#guards.get(node);
    if (guard !== undefined) guard.confirmed = members;
  }

  /** Records that a node has forgotten the room. */
  forgotten(node: string): void {
    this.#guards.delete(node);
    if (this.standby === node) this.standby = undefined;
  }

  /** Nodes that are to forget the room, each with the epoch that it was given. */
  get dismissed(): (readonly [node: string, epoch: number])[] {
    return [...this.#guards]
      .filter(([node]) => this.isOver || this.isPaused || node !== this.standby)
      .map(([node, { epoch }]) => [node, epoch] as const);
  }

  get guards(): Guard[] {
    return Array.from(this.#guards, ([node, { confirmed, sent }]) => ({
      node,
      memberships: confirmed === undefined || confirmed === sent ? [sent] : [confirmed, sent],
    }));
  }

  get isGuarded(): boolean {
    return this.#guards.size > 0;
  }
}
