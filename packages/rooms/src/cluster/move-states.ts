import type { RoomSnapshot } from '../room/room-snapshot.js';

/**
 * The states of a room that moves from its owner, the giver, to another node, the taker (docs/reference/moving.md).
 * The giver alone decides whether the room goes, so neither has to guess what the other did. Until then the giver owns
 * the room; afterwards it never does again, and repeats its decision until the taker has heard it.
 */

/** An offered room. */
export interface Offer {
  /** The giver. */
  node: string;
  /** Identifies the move; the giver's choice. */
  move: string;
  /** Unix milliseconds. */
  createdAt: number;
  /** Number of the room's moves, this one included. */
  epoch: number;
  snapshot: RoomSnapshot;
}

export type OfferAnswer = { accepted: true } | { refused: string };

export type GiverState =
  /** The room is frozen and offered. The giver owns it. */
  | 'offering'
  /** The room stays. The giver owns it. */
  | 'kept'
  /** The room belongs to the taker, which may not know it yet. */
  | 'given'
  /** The taker runs the room. */
  | 'gone'
  /** The taker has ended before it ran the room. */
  | 'lost'
  /** The taker has been cut off for too long. Only it knows whether it runs the room. */
  | 'parted';

export type GiverEvent =
  /** The taker holds a place, and every member has the room's events. */
  | 'accepted'
  /** The taker refused, did not answer in time, or the room has ended. */
  | 'refused'
  /** The taker answers that it runs the room. */
  | 'opened'
  /** The taker answers that it knows nothing of the move. */
  | 'unknown'
  /** The taker has been cut off for too long. */
  | 'overdue';

export type TakerState =
  /** The taker has the room's state and a place for it, and does not run it. */
  | 'holding'
  /** The taker owns the room. */
  | 'open'
  /** The taker has given up the place. */
  | 'dropped';

export type TakerEvent =
  /** The giver says that the room is given. */
  | 'take'
  /** The giver says that it keeps the room, or knows nothing of the move, or has left the cluster. */
  | 'keep'
  /** The giver has been cut off for too long. */
  | 'overdue';

export type Table<S extends string, E extends string> = Readonly<Record<S, Readonly<Partial<Record<E, S>>>>>;

/** An event that is missing in a state comes too late and changes nothing. */
export const GIVER: Table<GiverState, GiverEvent> = {
  offering: { accepted: 'given', refused: 'kept' },
  kept: {},
  given: { opened: 'gone', unknown: 'lost', overdue: 'parted' },
  gone: {},
  lost: {},
  parted: {},
};

export const TAKER: Table<TakerState, TakerEvent> = {
  holding: { take: 'open', keep: 'dropped', overdue: 'dropped' },
  open: {},
  dropped: {},
};

/** One side of a move. */
export class MoveSide<S extends string, E extends string> {
  readonly #table: Table<S, E>;
  #state: S;

  constructor(table: Table<S, E>, state: S) {
    this.#table = table;
    this.#state = state;
  }

  get state(): S {
    return this.#state;
  }

  /** Applies an event. Returns false if it changes nothing. */
  on(event: E): boolean {
    const next = this.#table[this.#state][event];
    if (next === undefined) return false;
    this.#state = next;

    return true;
  }
}

/** What a giver answers a taker that has waited too long for its decision. */
export type GiverSays = 'offered' | 'given' | 'unknown';

export function giverSays(state: GiverState | undefined): GiverSays {
  if (state === 'offering') return 'offered';

  return state === 'given' || state === 'gone' ? 'given' : 'unknown';
}
