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

interface Stranger {
  connection: Duplex;
  address: string;
}

/** Bounds the memory that strangers can occupy with websockets that never authenticate, in bytes for each and in number. */
export class UnauthenticatedSockets {
  readonly #onDrop: NonNullable<UnauthenticatedSocketsOptions['onDrop']>;
  readonly #shares = new ConnectionShares<Stranger>({
    max: MAX_UNAUTHENTICATED,
    maxPerNetwork: MAX_UNAUTHENTICATED_PER_NETWORK,
    drop: (stranger, limit) => this.#drop(stranger, limit),
  });

  constructor({ onDrop = () => undefined }: UnauthenticatedSocketsOptions = {}) {
    this.#onDrop = onDrop;
  }

  get size(): number {
    return this.#shares.size;
  }

  /**
   * Watches a connection whose websocket has just been accepted. `isOpen` is false once the websocket is closing, and no
   * longer stores what it receives. Returns the function to call when the client has authenticated.
   */
  add(
    connection: Duplex,
    { address = '', isOpen }: { address?: string | undefined; isOpen: () => boolean },
  ): () => void {
    const stranger: Stranger = { connection, address };
    this.#shares.add(stranger, address);

    let bytes = 0;
    const count = (chunk: Buffer): void => {
      bytes += chunk.byteLength;
      if (bytes <= MAX_UNAUTHENTICATED_BYTES) return;
      connection.off('data', count);
      // The websocket may just be refusing an announced length, with a close frame.
      setImmediate(() => {
        if (isOpen() && this.#shares.delete(stranger)) this.#drop(stranger, 'bytes');
      });
    };
    const release = (): void => {
      connection.off('data', count);
      connection.off('close', release);
      this.#shares.delete(stranger);
    };
    connection.on('data', count);
    connection.once('close', release);
    return release;
  }

  #drop({ connection, address }: Stranger, limit: 'bytes' | 'network' | 'total'): void {
    connection.destroy();
    this.#onDrop({ address, limit });
  }
}
