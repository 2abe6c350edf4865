const MAX_PER_ADDRESS = 64;

/** One connection to the mapper. */
export interface Client {
  /** Undefined for this machine. */
  readonly address: string | undefined;
  /** True while it keeps a name registered. */
  readonly registered: () => boolean;
  readonly drop: () => void;
}

/**
 * The connections of a mapper, bounded so that no caller takes the place of others: at most half of them come from
 * other machines, at most 64 from one of those, and an eighth is kept for connections that register nothing.
 */
export class Clients {
  readonly #max: number;
  /** By number of the connection, oldest first. */
  readonly #clients = new Map<number, Client>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Names that may be registered at once. */
  get maxNames(): number {
    return Math.ceil((this.#max * 7) / 8);
  }

  /**
   * Adds a connection, if need be in place of the oldest one that competes for the same room and registered nothing.
   * False when there is no such connection.
   */
  add(connection: number, client: Client): boolean {
    const { address } = client;
    const hasShare =
      address === undefined ||
      (this.#makeRoom(MAX_PER_ADDRESS, (other) => other.address === address) &&
        this.#makeRoom(Math.floor(this.#max / 2), (other) => other.address !== undefined));
    if (!hasShare || !this.#makeRoom(this.#max, () => true)) return false;
    this.#clients.set(connection, client);
    return true;
  }

  remove(connection: number): void {
    this.#clients.delete(connection);
  }

  drop(connection: number): void {
    this.#clients.get(connection)?.drop();
  }

  dropAll(): void {
    for (const client of this.#clients.values()) client.drop();
  }

  #makeRoom(most: number, competes: (client: Client) => boolean): boolean {
    if (this.#clients.size < most) return true;
    const competing = [...this.#clients].filter(([, client]) => competes(client));
    if (competing.length < most) return true;
    const [connection, oldest] = competing.find(([, client]) => !client.registered()) ?? [];
    if (connection === undefined) return false;
    this.#clients.delete(connection);
    oldest?.drop();
    return true;
  }
}
