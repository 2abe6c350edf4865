import type { MediaEndpoint, MediaEngine, RelayCredentials } from '@bloom/sfu';
import { type Clock, systemClock, Timer } from '@bloom/time';
import { relayCredentials } from './peer/credentials.js';

/** Lifetime of a check's credentials, ms. */
const CHECK_MS = 30_000;
/** Maximum number of checks of a node at a time; each has a transport in a media worker. */
const MAX_CHECKS = 64;
/** How many of them the people of one room may have, and those of all rooms: the rest is for operators. */
const MAX_OF_ROOM = 16;
const MAX_OF_ROOMS = 56;

export interface PathChecksOptions {
  readonly media: Pick<MediaEngine, 'openRoom'>;
  /** `JF_SECRET_KEY_BASE` */
  readonly secretKeyBase: string;
  readonly clock?: Clock;
}

/** What a browser needs to try the ways to a media worker of this node. */
export interface PathCheck {
  readonly endpoint: MediaEndpoint;
  readonly relay: RelayCredentials;
  /** Unix milliseconds. */
  readonly expiresAt: number;
}

interface OpenCheck {
  /** Undefined for an operator's. */
  readonly roomId: string | undefined;
  readonly timer: Timer;
  close(): Promise<void>;
}

/**
 * Lets people test whether packets reach this node before they join a room. Each check is a relay user of a media
 * worker, with a transport that never gets credentials for ICE: whatever arrives through its allocations ends there,
 * and the relay passes nothing on to other addresses.
 */
export class PathChecks {
  readonly #options: PathChecksOptions;
  readonly #clock: Clock;
  readonly #open = new Set<OpenCheck>();
  /** Including those being opened. */
  #operators = 0;
  /** The same by room. */
  readonly #rooms = new Map<string, number>();
  #last = 0;
  #closed = false;

  constructor(options: PathChecksOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /**
   * Opens a check on the least busy media worker, for somebody in this room or for an operator. Returns undefined if
   * too many are in progress. @throws MediaError
   */
  async open(roomId?: string): Promise<PathCheck | undefined> {
    if (this.#closed || !this.#hasPlace(roomId)) return undefined;
    this.#count(roomId, 1);
    try {
      return await this.#start(roomId);
    } catch (error) {
      this.#count(roomId, -1);
      throw error;
    }
  }

  /** Ends all checks. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#open].map((check) => this.#end(check)));
  }

  #hasPlace(roomId: string | undefined): boolean {
    let ofRooms = 0;
    for (const checks of this.#rooms.values()) ofRooms += checks;
    if (ofRooms + this.#operators >= MAX_CHECKS) return false;

    return roomId === undefined || ((this.#rooms.get(roomId) ?? 0) < MAX_OF_ROOM && ofRooms < MAX_OF_ROOMS);
  }

  #count(roomId: string | undefined, change: 1 | -1): void {
    if (roomId === undefined) {
      this.#operators += change;
      return;
    }
    const checks = (this.#rooms.get(roomId) ?? 0) + change;
    if (checks === 0) this.#rooms.delete(roomId);
    else this.#rooms.set(roomId, checks);
  }

  async #start(roomId: string | undefined): Promise<PathCheck> {
    const { media, secretKeyBase } = this.#options;
    this.#last += 1;
    const id = `check-${this.#last}`;
    // Room ids contain no space, so there is no collision.
    const room = await media.openRoom(`path ${id}`, () => undefined);
    const relay = relayCredentials(id, this.#clock.wall(), `check ${secretKeyBase}`);
    const endpoint = room.openTransport(id, relay);
    const check: OpenCheck = {
      roomId,
      timer: new Timer(this.#clock),
      close: async () => {
        await room.closeTransport(id);
        await room.close();
      },
    };
    this.#open.add(check);
    if (this.#closed) await this.#end(check);
    else check.timer.start(CHECK_MS, () => void this.#end(check));

    return { endpoint, relay, expiresAt: Math.floor(this.#clock.wall()) + CHECK_MS };
  }

  async #end(check: OpenCheck): Promise<void> {
    check.timer.stop();
    if (!this.#open.delete(check)) return;
    this.#count(check.roomId, -1);
    await check.close();
  }
}
