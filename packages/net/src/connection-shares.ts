import { networkOf } from './address.js';

export interface ConnectionSharesOptions<T> {
  max: number;
  maxPerNetwork?: number;
  /** Called for a connection that has lost its place to a newer one; the caller closes it. */
  drop: (connection: T, limit: 'network' | 'total') => void;
}

/**
 * Bounds connections in all and per network (see `networkOf`). A newcomer takes the place of the oldest connection that has
 * not yet earned its own: clients do so within a round trip, so silent connections keep no client out.
 */
export class ConnectionShares<T> {
  readonly #options: ConnectionSharesOptions<T>;
  readonly #networkOf = new Map<T, string>();
  /** Connections per network. */
  readonly #counts = new Map<string, number>();
  /** Connections that can lose their place, oldest first. */
  readonly #droppable = new Map<T, string>();

  constructor(options: ConnectionSharesOptions<T>) {
    this.#options = options;
  }

  get size(): number {
    return this.#networkOf.size;
  }

  /** Adds a connection. Returns false when a limit is reached and no connection can be dropped for it. */
  add(connection: T, address: string): boolean {
    const network = networkOf(address);
    if (!this.#makeRoom(network)) return false;
    this.#networkOf.set(connection, network);
    this.#droppable.set(connection, network);
    this.#counts.set(network, this.#countOf(network) + 1);
    return true;
  }

  /** Keeps the connection from being dropped; it still counts. */
  keep(connection: T): void {
    this.#droppable.delete(connection);
  }

  /** Forgets a connection. Returns false for one that is not counted. */
  delete(connection: T): boolean {
    const network = this.#networkOf.get(connection);
    if (network === undefined) return false;
    this.#networkOf.delete(connection);
    this.#droppable.delete(connection);
    const left = this.#countOf(network) - 1;
    if (left === 0) this.#counts.delete(network);
    else this.#counts.set(network, left);
    return true;
  }

  #makeRoom(network: string): boolean {
    const { max, maxPerNetwork = max, drop } = this.#options;
    const isNetworkFull = this.#countOf(network) >= maxPerNetwork;
    if (!isNetworkFull && this.size < max) return true;
    for (const [connection, other] of this.#droppable) {
      if (isNetworkFull && other !== network) continue;
      this.delete(connection);
      drop(connection, isNetworkFull ? 'network' : 'total');
      return true;
    }
    return false;
  }

  #countOf(network: string): number {
    return this.#counts.get(network) ?? 0;
  }
}
