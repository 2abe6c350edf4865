import type { Seat } from './client-types.js';
import { CONNECTION_LOST, type RoomClientError } from './errors.js';

/** How a client reaches its room: at the address of its seat, or through a node that the server has named. */
export class Route {
  readonly token: string;
  /** Address of the present session, or of the next one. */
  url: string;
  /** Why the seat is lost. */
  lost: RoomClientError | undefined;
  readonly #seat: string;
  /** Where the last session was. */
  #home: string;
  #standby: string | undefined;
  /** Every address has been tried since the last session, or is about to be. */
  #hasFailed = false;

  constructor({ url, token }: Seat) {
    this.url = this.#seat = this.#home = url;
    this.token = token;
  }

  /** False for an address where the client has not been yet. */
  get isKnown(): boolean {
    return this.url === this.#seat || this.url === this.#home;
  }

  /** False if the server at `url` may know nothing of the room, so that others are asked first. */
  get isFinal(): boolean {
    return this.isKnown || this.#hasFailed;
  }

  /** True if the room is expected to go on soon, so that an attempt may wait at the server. */
  get isExpected(): boolean {
    return this.#standby !== undefined && !this.#hasFailed;
  }

  /** Records the node that continues the room if its own is lost. Its address has no scheme: it is that of the seat. */
  nameStandby(address: string): void {
    this.#standby = (/^wss?:\/\//.exec(this.#seat)?.[0] ?? '') + address;
  }

  /** Records that the session at `url` is established. */
  arrived(): void {
    this.#home = this.url;
    this.#hasFailed = false;
  }

  /**
   * Chooses the next address after a session, or after an attempt that came to nothing. Returns false if that attempt
   * does not count: the client has never reached its address, which may be out of reach.
   */
  closed(code: number, wasConnected: boolean): boolean {
    const { isFinal: counts } = this;
    const standby = this.#standby ?? this.#home;
    // The browser refuses that address, and always will.
    if (code === 0) this.#standby = undefined;
    if (wasConnected) {
      // A server that closes the connection itself is alive.
      if (code === CONNECTION_LOST) this.url = standby;
      return counts;
    }
    const all = [...new Set([this.#seat, this.#home, standby])];
    this.url = all[(all.indexOf(this.url) + 1) % all.length]!;
    this.#hasFailed = true;
    return counts;
  }
}
