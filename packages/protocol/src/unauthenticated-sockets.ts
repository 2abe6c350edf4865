import type { Duplex } from 'node:stream';

/** Bytes that a websocket may receive before it has authenticated: some times the longest token. */
export const MAX_UNAUTHENTICATED_BYTES = 16 * 1024;
/** Sockets of one address, which may be a proxy in front of many clients. */
export const MAX_UNAUTHENTICATED_PER_ADDRESS = 128;
export const MAX_UNAUTHENTICATED = 1_024;

export interface UnauthenticatedSocketsOptions {
  /** Called for each socket that was destroyed for a limit. */
  onDrop?: (dropped: { address: string; limit: 'bytes' | 'address' | 'total' }) => void;
}

/**
 * Bounds the memory that strangers can occupy with websockets that never authenticate, in bytes for each and in number. A
 * full house drops the oldest socket, because clients authenticate within a round trip.
 */
export class UnauthenticatedSockets {
  readonly #onDrop: NonNullable<UnauthenticatedSocketsOptions['onDrop']>;
  /** Oldest first. */
  readonly #waiting = new Map<Duplex, string>();
  readonly #byAddress = new Map<string, Set<Duplex>>();

  constructor({ onDrop = () => undefined }: UnauthenticatedSocketsOptions = {}) {
    this.#onDrop = onDrop;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /**
   * Watches a connection whose websocket has just been accepted. `isOpen` is false once the websocket is closing, and no
   * longer stores what it receives. Returns the function to call when the client has authenticated.
   */
  add(
    connection: Duplex,
    { address = '', isOpen }: { address?: string | undefined; isOpen: () => boolean },
  ): () => void {
    const sameAddress = this.#byAddress.get(address) ?? new Set();
    if (sameAddress.size >= MAX_UNAUTHENTICATED_PER_ADDRESS) this.#drop(first(sameAddress), 'address');
    else if (this.#waiting.size >= MAX_UNAUTHENTICATED) this.#drop(first(this.#waiting.keys()), 'total');
    sameAddress.add(connection);
    this.#byAddress.set(address, sameAddress);
    this.#waiting.set(connection, address);

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
      this.#forget(connection);
    };
    connection.on('data', count);
    connection.once('close', release);
    return release;
  }

  #drop(connection: Duplex | undefined, limit: 'bytes' | 'address' | 'total'): void {
    const address = connection === undefined ? undefined : this.#waiting.get(connection);
    if (connection === undefined || address === undefined) return;
    this.#forget(connection);
    connection.destroy();
    this.#onDrop({ address, limit });
  }

  #forget(connection: Duplex): void {
    const address = this.#waiting.get(connection);
    if (address === undefined) return;
    this.#waiting.delete(connection);
    const sameAddress = this.#byAddress.get(address);
    sameAddress?.delete(connection);
    if (sameAddress?.size === 0) this.#byAddress.delete(address);
  }
}

function first<T>(items: Iterable<T>): T | undefined {
  for (const item of items) return item;
  return undefined;
}
