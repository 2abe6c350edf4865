import type { Log } from '@bloom/log';
import { type Clock, Timer } from '@bloom/time';

export interface DrainOrderOptions {
  /** The rooms of this node; the order only keeps new ones away. */
  rooms: { drain(): void; undrain(): void; isDraining(): boolean; count(): number };
  log: Log;
  clock: Clock;
}

/** Moves the rooms of this node to other members. */
export interface Mover {
  /** Returns why rooms cannot move now; undefined if they can. */
  refusal(): string | undefined;
  /** Moves rooms until none is left, `timeoutMs` have passed or `stop` is called. `thenEnd`: the others end then. */
  moveAll(timeoutMs: number, thenEnd?: boolean): Promise<void>;
  stop(): void;
  /** Moves one room to `to`; null = the best other node. */
  moveTo(roomId: string, to: string | null): Promise<MoveOutcome>;
  /** Rooms that the current order could not move so far, and why. */
  readonly staying: ReadonlyMap<string, string>;
}

/** What became of a room that an operator moves. `ms`: since the order. */
export type MoveOutcome =
  | { outcome: 'moved'; node: string; ms: number }
  /** `reason` is a clause about the room. */
  | { outcome: 'stays'; reason: string }
  /** The room belongs to `node`, which has not said yet that it runs there. */
  | { outcome: 'unconfirmed'; node: string; ms: number }
  /** `node` ended before the room ran there. */
  | { outcome: 'lost'; node: string; ms: number };

const ALONE = 'This node is not part of a cluster';

interface Order {
  /** The issuer: a tool, or a route of the HTTP API. */
  by: string;
  /** Unix milliseconds. */
  since: number;
  /** Unix milliseconds at which the node accepts rooms again; null = only when the order is withdrawn. */
  until: number | null;
  /** Unix milliseconds until which the node moves its rooms away; null = it moves none. */
  movesUntil: number | null;
}

type Listener = (event: 'draining' | 'undrained', reason: string) => void;

/** An operator's order to keep new rooms away from this node, until it is withdrawn or its deadline passes. */
export class DrainOrder {
  readonly #options: DrainOrderOptions;
  readonly #timer: Timer;
  readonly #listeners = new Set<Listener>();
  #current: Order | undefined;
  #mover: Mover | undefined;

  constructor(options: DrainOrderOptions) {
    this.#options = options;
    this.#timer = new Timer(options.clock);
  }

  /** The current order; undefined when there is none. */
  get current(): Order | undefined {
    return this.#current;
  }

  /** Returns a function that unsubscribes. */
  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);

    return () => this.#listeners.delete(listener);
  }

  /** Names who moves rooms: a node that is not part of a cluster has nobody. */
  moveThrough(mover: Mover): void {
    this.#mover = mover;
  }

  /** Returns why this node cannot move its rooms to others now; undefined if it can. */
  moveRefusal(): string | undefined {
    return this.#mover === undefined ? ALONE : this.#mover.refusal();
  }

  /** Moves all rooms away for at most `ms`, because the node is closing. Does nothing outside a cluster. */
  moveAway(ms: number): void {
    void this.#mover?.moveAll(ms, true);
  }

  /** Moves one room of this node to `to`; null = the best other node. The node goes on to take new rooms. */
  async moveRoom(by: string, roomId: string, to: string | null): Promise<MoveOutcome> {
    if (this.#mover === undefined) return { outcome: 'stays', reason: ALONE };
    this.#options.log.warn('room.move_ordered', { by, roomId, to });

    return this.#mover.moveTo(roomId, to);
  }

  /** Rooms that the current order could not move so far, and why. */
  get staying(): ReadonlyMap<string, string> {
    return this.#mover?.staying ?? new Map();
  }

  /**
   * Starts draining, or replaces the current order. `moveMs`: how long to try to move the running rooms away; null =
   * they stay.
   */
  give(by: string, deadlineMs: number | null, moveMs: number | null = null): void {
    const { rooms, log, clock } = this.#options;
    const wasDraining = rooms.isDraining();
    this.#timer.stop();
    if (deadlineMs !== null) this.#timer.start(deadlineMs, () => this.#over());
    const since = this.#current?.since ?? clock.wall();
    const at = (ms: number | null): number | null => (ms === null ? null : clock.wall() + ms);
    this.#current = { by, since, until: at(deadlineMs), movesUntil: at(moveMs) };
    rooms.drain();
    log.warn('node.drain_ordered', { by, deadlineMs, moveMs, rooms: rooms.count() });
    if (moveMs === null) this.#mover?.stop();
    else void this.#mover?.moveAll(moveMs);
    if (!wasDraining) this.#notify('draining', by);
  }

  /** Lets the node accept rooms again. Returns false when there was no order. */
  withdraw(by: string): boolean {
    if (this.#current === undefined) return false;
    this.#options.log.warn('node.drain_withdrawn', { by });
    this.#end(by);

    return true;
  }

  /** Forgets the order without accepting rooms again, because the node is closing. */
  close(): void {
    this.#timer.stop();
    this.#current = undefined;
  }

  #over(): void {
    const { log, rooms } = this.#options;
    log.warn('node.drain_over', { by: this.#current?.by, rooms: rooms.count() });
    this.#end('deadline');
  }

  #end(reason: string): void {
    this.#timer.stop();
    this.#mover?.stop();
    this.#current = undefined;
    this.#options.rooms.undrain();
    this.#notify('undrained', reason);
  }

  #notify(event: 'draining' | 'undrained', reason: string): void {
    for (const listener of this.#listeners) listener(event, reason);
  }
}
