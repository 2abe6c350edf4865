/** Events held back for one room. Its owner is cut off for seconds; a longer queue means a flood of messages. */
const MAX_HELD = 10_000;

/** Keeps standbys of the rooms of this node. */
export interface RoomWatcher {
  /** Called when the state of a room has changed. */
  changed(roomId: string): void;
  /** Returns whether this node may not act for the room, because a standby may have taken it over. */
  isFenced(roomId: string): boolean;
}

/**
 * Holds back the events of rooms that a standby may have taken over, in order: they are published once this node is
 * known to be the owner still, or forgotten.
 */
export class Fence {
  /** Undefined while no room has a standby. */
  watcher: RoomWatcher | undefined;
  readonly #held = new Map<string, (() => void)[]>();

  isFenced(roomId: string): boolean {
    return this.watcher?.isFenced(roomId) === true;
  }

  /** Returns whether events of the room wait here to be published. */
  holds(roomId: string): boolean {
    return this.#held.has(roomId);
  }

  changed(roomId: string): void {
    this.watcher?.changed(roomId);
  }

  /** Publishes an event now, or once `release` is called. */
  pass(roomId: string, publish: () => void): void {
    const held = this.#held.get(roomId);
    if (held === undefined && !this.isFenced(roomId)) return publish();
    if (held === undefined) this.#held.set(roomId, [publish]);
    else if (held.length < MAX_HELD) held.push(publish);
  }

  /** Publishes what was held back, unless the room is still fenced. */
  release(roomId: string): void {
    const held = this.#held.get(roomId);
    if (held === undefined || this.isFenced(roomId)) return;
    this.#held.delete(roomId);
    for (const publish of held) publish();
  }

  /** Forgets what was held back, because the room goes on at another node. */
  drop(roomId: string): void {
    this.#held.delete(roomId);
  }
}
