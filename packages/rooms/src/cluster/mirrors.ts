import type { RoomSnapshot } from '../room/room-snapshot.js';
import { newStandbySide, type StandbySide, type Voter } from './standby-states.js';

/** Longest state of a room that has a standby, as JSON, in characters. */
export const MAX_MIRROR = 64 * 1024;
/** Characters of state kept for one owner, and for all. */
const MAX_PER_OWNER = 32 * 1024 * 1024;
const MAX_IN_ALL = 128 * 1024 * 1024;
/** Rooms kept for one owner. */
const MAX_ROOMS = 10_000;

/** The state of a room as its owner sends it. */
export interface MirroredRoom {
  snapshot: RoomSnapshot;
  /** Length of its JSON. */
  chars: number;
}

/** What an owner sends to a standby whenever its room has changed. */
export interface MirrorUpdate {
  node: string;
  /** The owner's process. */
  process: string;
  /** Unix milliseconds, by the owner's clock. */
  createdAt: number;
  /** Epoch under which the standby may take the room over. */
  epoch: number;
  /** The members that count for a majority, the owner and the standby included. */
  members: readonly Voter[];
}

/**
 * `kept` false: the room is being taken over. Refused: the node has forgotten the room. `address`: where clients reach
 * the node, `host[:port][/path]`.
 */
export type MirrorAnswer = { kept: boolean; address?: string } | { refused: string };

export interface Mirror extends Omit<MirrorUpdate, 'node'> {
  readonly owner: string;
  readonly roomId: string;
  room: MirroredRoom;
  /** Characters of the state and of the members' names. */
  chars: number;
  /** When this state arrived, by `clock.now`. */
  at: number;
  readonly side: StandbySide;
  /** When this node heard of the end of the owner's process, by the awake clock. */
  orphanedAt: number | undefined;
  /** How often it could not be opened, and when to try again, by `clock.now`. */
  failures: number;
  retryAt: number;
}

/** The states of rooms of other nodes, for which this node is the standby. Bounded per owner and in all. */
export class Mirrors {
  /** By owner, then by room id. */
  readonly #owners = new Map<string, Map<string, Mirror>>();
  readonly #chars = new Map<string, number>();
  #allChars = 0;

  get owners(): string[] {
    return [...this.#owners.keys()];
  }

  of(owner: string): Mirror[] {
    return [...(this.#owners.get(owner)?.values() ?? [])];
  }

  /** Returns whether this node is a standby of a room with this id. */
  has(roomId: string): boolean {
    for (const rooms of this.#owners.values()) if (rooms.has(roomId)) return true;

    return false;
  }

  /**
   * Keeps the latest state of a room. Returns why it cannot; the standby then forgets the room. `nowMs`: by
   * `clock.now`.
   */
  keep({ node: owner, ...update }: MirrorUpdate, room: MirroredRoom, nowMs: number): string | null {
    const { roomId } = room.snapshot.config;
    const known = this.#owners.get(owner)?.get(roomId);
    const isSame = known?.createdAt === update.createdAt && known.epoch === update.epoch;
    // A late message of the time before this node became the standby again.
    if (known?.createdAt === update.createdAt && known.epoch > update.epoch) return 'A later state has arrived';
    this.drop(owner, roomId);
    const own = update.members.reduce((sum, { node, process }) => sum + node.length + process.length, room.chars);
    const chars = (this.#chars.get(owner) ?? 0) + own;
    const rooms = this.#owners.get(owner) ?? new Map<string, Mirror>();
    if (chars > MAX_PER_OWNER || this.#allChars + own > MAX_IN_ALL) return 'The standby has no memory left';
    if (rooms.size >= MAX_ROOMS) return `The standby keeps ${MAX_ROOMS} rooms of this node already`;
    this.#owners.set(owner, rooms);
    this.#chars.set(owner, chars);
    this.#allChars += own;
    if (isSame) rooms.set(roomId, Object.assign(known, update, { room, chars: own, at: nowMs }));
    else
      rooms.set(roomId, {
        ...update,
        owner,
        roomId,
        room,
        chars: own,
        at: nowMs,
        side: newStandbySide(),
        orphanedAt: undefined,
        failures: 0,
        retryAt: nowMs,
      });

    return null;
  }

  /** Returns the room's latest state from this owner. */
  get(owner: string, roomId: string): Mirror | undefined {
    return this.#owners.get(owner)?.get(roomId);
  }

  /** Forgets the state of a room. */
  drop(owner: string, roomId: string): void {
    const rooms = this.#owners.get(owner);
    const mirror = rooms?.get(roomId);
    if (rooms === undefined || mirror === undefined) return;
    rooms.delete(roomId);
    const left = (this.#chars.get(owner) ?? 0) - mirror.chars;
    this.#allChars -= mirror.chars;
    this.#chars.set(owner, left);
    if (rooms.size > 0) return;
    this.#owners.delete(owner);
    this.#chars.delete(owner);
  }
}
