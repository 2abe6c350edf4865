/**
 * Points that a move passes in this order: the first five at the giver, the others at the taker
 * (docs/reference/moving.md, "The states of a move").
 */
export type MovePoint =
  /** The giver is about to reserve a place. */
  | 'reserve'
  /** The place is reserved. */
  | 'reserved'
  /** The room is frozen. */
  | 'offer'
  /** The giver has decided to give the room away, and has told nobody. */
  | 'give'
  /** The taker has said that it runs the room. */
  | 'taken'
  /** The offer has arrived at the taker. */
  | 'offered'
  /** The taker has a place for the room. */
  | 'held'
  /** The decision has arrived. */
  | 'take'
  /** The room runs, and nobody knows. */
  | 'opened'
  /** The room is announced. */
  | 'announced';

/** What happens to this node when a move reaches a point, for tests of what the other nodes do then. */
export class MovePoints {
  readonly #armed = new Map<MovePoint, () => void>();

  /** Calls `act` once, when a move reaches the point for the next time. */
  arm(point: MovePoint, act: () => void): void {
    this.#armed.set(point, act);
  }

  disarm(point: MovePoint): void {
    this.#armed.delete(point);
  }

  reached(point: MovePoint): void {
    const act = this.#armed.get(point);
    this.#armed.delete(point);
    act?.();
  }
}
