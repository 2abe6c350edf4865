import { ConnectionShares } from '@bloom/net';

const MAX_PER_NETWORK = 256;
/**
 * Age from which a newer connection may replace one: a look-up takes one round trip. Even a flood of 1,024 connections
 * per second from one network locks no node out.
 */
const GRACE_MS = 250;

/** One connection to the mapper. */
export interface Client {
  /** Undefined for this machine. */
  readonly address: string | undefined;
  readonly drop: () => void;
}

/**
 * The connections of a mapper, limited so that no caller displaces others: at most half of them come from other
 * machines, at most 256 of those from one network, and an eighth is reserved for connections that register nothing.
 */
export class Clients {
  /** Maximum number of registered names. */
  readonly maxNames: number;
  /** Clients by connection number. */
  readonly #clients = new Map<number, Client>();
  readonly #all: ConnectionShares<number>;
  readonly #remote: ConnectionShares<number>;

  constructor(max: number, now?: () => number) {
    const drop = (connection: number): void => {
      this.drop(connection);
      this.remove(connection);
    };
    this.maxNames = Math.ceil((max * 7) / 8);
    this.#all = new ConnectionShares({ max, graceMs: GRACE_MS, now, drop });
    this.#remote = new ConnectionShares({
      max: Math.floor(max / 2),
      maxPerNetwork: MAX_PER_NETWORK,
      graceMs: GRACE_MS,
      now,
      drop,
    });
  }

  /**
   * Adds a connection, replacing if necessary the oldest one that competes for the same room and registered nothing.
   * Returns false when there is none to replace.
   */
  add(connection: number, client: Client): boolean {
    if (client.address !== undefined && !this.#remote.add(connection, client.address)) return false;
    if (!this.#all.add(connection, '')) {
      this.#remote.delete(connection);
      return false;
    }
    this.#clients.set(connection, client);
    return true;
  }

  /** Protects a connection that has registered a name from being dropped for a newer one. */
  keep(connection: number): void {
    this.#all.keep(connection);
    this.#remote.keep(connection);
  }

  /** Lets a newer connection replace one that has its answer at once. */
  finish(connection: number): void {
    this.#all.finish(connection);
    this.#remote.finish(connection);
  }

  remove(connection: number): void {
    this.#clients.delete(connection);
    this.#all.delete(connection);
    this.#remote.delete(connection);
  }

  drop(connection: number): void {
    this.#clients.get(connection)?.drop();
  }

  dropAll(): void {
    for (const client of this.#clients.values()) client.drop();
  }
}
