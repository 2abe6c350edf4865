import type { RoomRef } from '../room/room-messages.js';
import type { Candidacy } from './standby-states.js';

/** A room that this node has taken over from a process of its owner. */
export interface TakenRoom extends Candidacy {
  readonly owner: string;
  readonly ownerProcess: string;
  /** Its actor here; undefined while it is being opened. */
  readonly ref?: RoomRef;
  /** When its former owner was last told that it has ended here, by `clock.now`. */
  toldAt?: number;
}

/** Rooms remembered: owners that never return never withdraw theirs. */
const MAX_TAKEN = 100_000;

/** The rooms that this node has taken over, until their owners have withdrawn them. The oldest go first. */
export class TakenRooms {
  /** By owner, then by room id. */
  readonly #owners = new Map<string, Map<string, TakenRoom>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get owners(): string[] {
    return [...this.#owners.keys()];
  }

  of(owner: string): TakenRoom[] {
    return [...(this.#owners.get(owner)?.values() ?? [])];
  }

  has(owner: string, roomId: string): boolean {
    return this.#owners.get(owner)?.has(roomId) === true;
  }

  /** Returns whether a room of that process has been taken over. */
  hasOf({ owner, ownerProcess }: Pick<TakenRoom, 'owner' | 'ownerProcess'>): boolean {
    return this.of(owner).some((room) => room.ownerProcess === ownerProcess);
  }

  add(room: TakenRoom): void {
    this.delete(room.owner, room.roomId);
    if (this.#size >= MAX_TAKEN) {
      const [owner = ''] = this.#owners.keys();
      this.delete(owner, this.#owners.get(owner)?.keys().next().value ?? '');
    }
    const rooms = this.#owners.get(room.owner) ?? new Map<string, TakenRoom>();
    this.#owners.set(room.owner, rooms.set(room.roomId, room));
    this.#size += 1;
  }

  delete(owner: string, roomId: string): void {
    const rooms = this.#owners.get(owner);
    if (rooms?.delete(roomId) !== true) return;
    this.#size -= 1;
    if (rooms.size === 0) this.#owners.delete(owner);
  }
}
