import type { Duplex } from 'node:stream';
import { ConnectionShares } from './connection-shares.js';

/** Bytes that a websocket may receive before it has authenticated: some times the longest token. */
export const MAX_UNAUTHENTICATED_BYTES = 16 * 1024;
/** Sockets of one network, which may be a proxy in front of many clients. */
export const MAX_UNAUTHENTICATED_PER_NETWORK = 128;
export const MAX_UNAUTHENTICATED = 1_024;

export interface UnauthenticatedSocketsOptions {
  /** Called for each socket that was destroyed for a limit. */
  onDrop?: (dropped: { address: string; limit: 'bytes' | 'network' | 'total' }) => void;
}

/** Bounds the memory that strangers can occupy with websockets that never authenticate, in bytes for each and in number. */
export class UnauthenticatedSockets {
  readonly #onDrop: NonNullable<UnauthenticatedSocketsOptions['onDrop']>;
  readonly #addresses = new Map<Duplex, string>();
  readonly #shares = new ConnectionShares<Duplex>({
    max: MAX_UNAUTHENTICATED,
    maxPerNetwork: MAX_UNAUTHENTICATED_PER_NETWORK,
    drop: (connection, limit) => this.#drop(connection, limit),
  });

  constructor({ onDrop = () => undefined }: UnauthenticatedSocketsOptions = {}) {
    this.#onDrop = onDrop;
  }

  get size(): number {
    return this.#addresses.size;
  }

  /**
   * Watches a connection whose websocket has just been accepted. `isOpen` is false once the websocket is closing, and no
   * longer stores what it receives. Returns the function to call when the client has authenticated.
   */
  add(
    connection: Duplex,
    { address = '', isOpen }: { address?: string | undefined; isOpen: () => boolean },
  ): () => void {
    this.#shares.add(connection, address);
    this.#addresses.set(connection, address);

    let bytes = 0;
    const count = (chunk: Buffer): void => {
      bytes += chunk.byteLength;
      if (bytes <= MAX_UNAUTHENTICATED_BYTES) return;
      connection.off('data', count);
      // The websocket may just be refusing an announced length, with a close frame.
      setImmediate(() => {
        if (isOpen()) this.#drop(connection, 'bytes');
      });
    };
    const release = (): void => {
      connection.off('data', count);
      connection.off('close', release);
      this.#shares.delete(connection);
      this.#addresses.delete(connection);
    };
    connection.on('data', count);
    connection.once('close', release);
    return release;
  }

  #drop(connection: Duplex, limit: 'bytes' | 'network' | 'total'): void {
    const address = this.#addresses.get(connection);
    if (address === undefined) return;
    this.#shares.delete(connection);
    this.#addresses.delete(connection);
    connection.destroy();
    this.#onDrop({ address, limit });
  }
}
