import { networkOf } from './address.js';

export interface ConnectionSharesOptions<T> {
  max: number;
  maxPerNetwork?: number;
  /** Separate limits for kept connections: neither kind locks the other out. Default: both share `max`. */
  kept?: { max: number; maxPerNetwork: number };
  /**
   * Age from which a newer connection may replace one: longer than honest clients take to earn their place. At the
   * limit, with only younger connections, a newcomer is refused unless another network has more of them. Default 0.
   */
  graceMs?: number;
  /** Default: the system's monotonic clock. */
  now?: (() => number) | undefined;
  /** Called for a connection that was replaced by a newer one; the caller closes it. */
  drop: (connection: T, limit: 'network' | 'total') => void;
}

interface Network<T> {
  /** Oldest first. */
  readonly droppable: Set<T>;
  kept: number;
}

/**
 * Limits connections in total and per network (see `networkOf`). A newcomer replaces the oldest connection that has not
 * earned its place yet, and never one that has.
 */
export class ConnectionShares<T> {
  readonly #options: ConnectionSharesOptions<T>;
  readonly #now: () => number;
  readonly #graceMs: number;
  readonly #networks = new Map<string, Network<T>>();
  /** Connections that may be replaced, oldest first. */
  readonly #droppable = new Map<T, { network: string; since: number }>();
  readonly #kept = new Map<T, string>();
  /** Connections that await nothing, and that are replaced first. */
  readonly #finished = new Set<T>();

  constructor(options: ConnectionSharesOptions<T>) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#graceMs = options.graceMs ?? 0;
  }

  /** Number of connections of both kinds. */
  get size(): number {
    return this.#droppable.size + this.#kept.size;
  }

  /** Adds a connection. Returns false when a limit is reached and no connection can be dropped for it. */
  add(connection: T, address: string): boolean {
    const network = networkOf(address);
    if (!this.#makeRoom(network)) return false;
    this.#droppable.set(connection, { network, since: this.#now() });
    this.#network(network).droppable.add(connection);
    return true;
  }

  /**
   * Protects the connection from replacement. Returns false at the limit of kept connections: the caller closes it.
   * Returns true for a connection that is already kept or not counted.
   */
  keep(connection: T): boolean {
    const found = this.#droppable.get(connection);
    if (found === undefined) return true;
    const network = this.#network(found.network);
    const { kept } = this.#options;
    if (kept !== undefined && (this.#kept.size >= kept.max || network.kept >= kept.maxPerNetwork)) return false;
    this.#droppable.delete(connection);
    this.#finished.delete(connection);
    network.droppable.delete(connection);
    this.#kept.set(connection, found.network);
    network.kept += 1;
    return true;
  }

  /** Gives up the grace period of a connection that has its answer and only has to close. */
  finish(connection: T): void {
    if (this.#droppable.has(connection)) this.#finished.add(connection);
  }

  /** Removes a connection. Returns false if it was not counted. */
  delete(connection: T): boolean {
    const name = this.#kept.get(connection) ?? this.#droppable.get(connection)?.network;
    if (name === undefined) return false;
    const network = this.#network(name);
    if (this.#kept.delete(connection)) network.kept -= 1;
    this.#droppable.delete(connection);
    this.#finished.delete(connection);
    network.droppable.delete(connection);
    if (network.kept === 0 && network.droppable.size === 0) this.#networks.delete(name);
    return true;
  }

  #makeRoom(network: string): boolean {
    const { max, maxPerNetwork = max, kept, drop } = this.#options;
    const own = this.#networks.get(network);
    const ofNetwork = own === undefined ? 0 : own.droppable.size + (kept === undefined ? own.kept : 0);
    const isNetworkFull = ofNetwork >= maxPerNetwork;
    if (!isNetworkFull && this.#droppable.size + (kept === undefined ? this.#kept.size : 0) < max) return true;
    const among = isNetworkFull ? network : undefined;
    const oldest = this.#firstFinished(among) ?? this.#oldestUnfinished(isNetworkFull ? own : undefined, ofNetwork);
    if (oldest === undefined) return false;
    this.delete(oldest);
    drop(oldest, isNetworkFull ? 'network' : 'total');
    return true;
  }

  #firstFinished(network: string | undefined): T | undefined {
    for (const connection of this.#finished) {
      if (network === undefined || this.#droppable.get(connection)?.network === network) return connection;
    }
    return undefined;
  }

  #oldestUnfinished(own: Network<T> | undefined, ofNetwork: number): T | undefined {
    return own === undefined ? this.#oldestOfAll(ofNetwork) : this.#aged(own.droppable);
  }

  /** Returns the oldest connection, of any age, of the network with the most, if that is more than the newcomer's. */
  #oldestOfAll(ofNetwork: number): T | undefined {
    let most: Set<T> | undefined;
    for (const { droppable } of this.#networks.values()) if (droppable.size > (most?.size ?? 0)) most = droppable;
    if (most !== undefined && most.size > ofNetwork + 1) return most.values().next().value;

    return this.#aged(this.#droppable.keys());
  }

  /** Returns the first connection if it is old enough to be replaced. */
  #aged(connections: Iterable<T>): T | undefined {
    for (const connection of connections) {
      const since = this.#droppable.get(connection)?.since ?? Number.POSITIVE_INFINITY;
      return this.#now() - since < this.#graceMs ? undefined : connection;
    }
    return undefined;
  }

  #network(name: string): Network<T> {
    let network = this.#networks.get(name);
    if (network === undefined) {
      network = { droppable: new Set(), kept: 0 };
      this.#networks.set(name, network);
    }
    return network;
  }
}
