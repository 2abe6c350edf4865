import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { ConnectionShares } from './connection-shares.js';

/** Bytes that a websocket may receive before it has authenticated: several times the longest token. */
export const MAX_UNAUTHENTICATED_BYTES = 16 * 1024;
/** Bytes that all of them may receive; beyond this, none may exceed its share. */
export const MAX_UNAUTHENTICATED_BYTES_IN_ALL = 8 * 1024 * 1024;
/** Bound on the sockets of one network, which may be a proxy or a NAT in front of many clients. */
export const MAX_UNAUTHENTICATED_PER_NETWORK = 1_536;
export const MAX_UNAUTHENTICATED = 2_048;
/**
 * Age from which a newer socket may replace a silent one: honest clients send the token one round trip after the
 * handshake. With 1,536 places, even a flood of 1,536 sockets per second from the same address locks none of them out;
 * a slower flood leaves more time.
 */
export const UNAUTHENTICATED_GRACE_MS = 1_000;

/** A request to change to the websocket protocol, as Node's `upgrade` event carries it. */
export interface Upgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  /** The client's, which a proxy may have announced. */
  readonly address: string;
}

export interface UnauthenticatedSocketsOptions {
  /** Called for each socket destroyed because of a limit. */
  onDrop?: (dropped: { address: string; limit: 'bytes' | 'network' | 'total' }) => void;
  /** Returns monotonic milliseconds. Default: the system's clock. */
  now?: (() => number) | undefined;
}

interface Stranger {
  readonly connection: Duplex;
  readonly address: string;
  bytes: number;
}

/** Limits the number of websockets that have not authenticated, and the bytes that strangers can send through them. */
export class UnauthenticatedSockets {
  readonly #onDrop: NonNullable<UnauthenticatedSocketsOptions['onDrop']>;
  readonly #shares: ConnectionShares<Stranger>;
  /** Bytes received by all of them. */
  #bytes = 0;

  constructor({ onDrop = () => undefined, now }: UnauthenticatedSocketsOptions = {}) {
    this.#onDrop = onDrop;
    this.#shares = new ConnectionShares<Stranger>({
      max: MAX_UNAUTHENTICATED,
      maxPerNetwork: MAX_UNAUTHENTICATED_PER_NETWORK,
      graceMs: UNAUTHENTICATED_GRACE_MS,
      now,
      drop: (stranger, limit) => this.#drop(stranger, limit),
    });
  }

  get size(): number {
    return this.#shares.size;
  }

  /**
   * Watches a connection whose websocket is about to be accepted. `isOpen` returns false once the websocket is closing
   * and no longer stores what it receives. Returns a function to call when the client has authenticated; undefined if
   * sockets that may still authenticate occupy all places.
   */
  add(
    connection: Duplex,
    { address = '', isOpen }: { address?: string | undefined; isOpen: () => boolean },
  ): (() => void) | undefined {
    const stranger: Stranger = { connection, address, bytes: 0 };
    if (!this.#shares.add(stranger, address)) {
      this.#onDrop({ address, limit: this.size < MAX_UNAUTHENTICATED ? 'network' : 'total' });
      return undefined;
    }

    const count = (chunk: Buffer): void => {
      stranger.bytes += chunk.byteLength;
      this.#bytes += chunk.byteLength;
      if (!this.#isTooMuch(stranger)) return;
      connection.off('data', count);
      // The websocket may be refusing an announced length with a close frame right now.
      setImmediate(() => {
        if (isOpen() && this.#shares.delete(stranger)) this.#drop(stranger, 'bytes');
      });
    };
    const release = (): void => {
      connection.off('data', count);
      connection.off('close', release);
      this.#bytes -= stranger.bytes;
      stranger.bytes = 0;
      this.#shares.delete(stranger);
    };
    connection.on('data', count);
    connection.once('close', release);
    return release;
  }

  #isTooMuch({ bytes }: Stranger): boolean {
    if (bytes > MAX_UNAUTHENTICATED_BYTES) return true;

    return this.#bytes > MAX_UNAUTHENTICATED_BYTES_IN_ALL && bytes > MAX_UNAUTHENTICATED_BYTES_IN_ALL / this.size;
  }

  #drop({ connection, address }: Stranger, limit: 'bytes' | 'network' | 'total'): void {
    connection.destroy();
    this.#onDrop({ address, limit });
  }
}
