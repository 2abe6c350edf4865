import type { Log } from '@bloom/log';
import { type Notification, UPLOAD_REPORTS } from '@bloom/protocol';

/** Events held back for one room. Its owner is cut off for seconds; a longer queue means a flood. */
const MAX_HELD = 10_000;
/** Size of the events held back for one room, as JSON: metadata may be large. */
const MAX_HELD_CHARS = 16 * 1024 * 1024;

/** Keeps standbys of the rooms of this node. */
export interface RoomWatcher {
  /** Called when the state of a room has changed. */
  changed(roomId: string): void;
  /** Returns whether this node may not act for the room, because a standby may have taken it over. */
  isFenced(roomId: string): boolean;
}

interface Held {
  readonly events: { readonly type: Notification['type']; readonly publish: () => void }[];
  chars: number;
  dropped: number;
}

/**
 * Holds back the events of rooms that a standby may have taken over, in order: they are published once this node is
 * known to be the owner still, or forgotten.
 */
export class Fence {
  /** Undefined while no room has a standby. */
  watcher: RoomWatcher | undefined;
  readonly #log: Pick<Log, 'warn'>;
  readonly #held = new Map<string, Held>();

  constructor(log: Pick<Log, 'warn'>) {
    this.#log = log;
  }

  isFenced(roomId: string): boolean {
    return this.watcher?.isFenced(roomId) === true;
  }

  /** Returns whether events of the room wait here to be published. */
  holds(roomId: string): boolean {
    return this.#held.has(roomId);
  }

  /** True while events of any room wait here. */
  get isHolding(): boolean {
    return this.#held.size > 0;
  }

  changed(roomId: string): void {
    this.watcher?.changed(roomId);
  }

  /** Publishes an event now, or once `release` is called. */
  pass(event: Notification, publish: () => void): void {
    const { roomId } = event;
    if (!this.isFenced(roomId)) {
      this.release(roomId);
      return publish();
    }
    let held = this.#held.get(roomId);
    if (held === undefined) this.#held.set(roomId, (held = { events: [], chars: 0, dropped: 0 }));
    // Clients send these at any rate: they would push out what the backend must hear.
    const chars = event.type === 'dataMessage' ? Number.POSITIVE_INFINITY : sizeOf(event);
    if (held.events.length < MAX_HELD && held.chars + chars <= MAX_HELD_CHARS) {
      held.events.push({ type: event.type, publish });
      held.chars += chars;
    } else held.dropped += 1;
  }

  /** Publishes what was held back, unless the room is still fenced. */
  release(roomId: string): void {
    const held = this.#held.get(roomId);
    if (held === undefined || this.isFenced(roomId)) return;
    this.#held.delete(roomId);
    for (const { publish } of held.events) publish();
    if (held.dropped > 0) this.#log.warn('room.events_dropped', { roomId, events: held.dropped });
  }

  /** Forgets what was held back, because the room goes on at another node, which knows nothing of uploads from here. */
  drop(roomId: string): void {
    const held = this.#held.get(roomId)?.events ?? [];
    this.#held.delete(roomId);
    for (const { type, publish } of held) if (UPLOAD_REPORTS.has(type)) publish();
  }
}

function sizeOf(event: Notification): number {
  return JSON.stringify(event).length;
}
