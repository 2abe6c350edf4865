import { BlockList, isIP } from 'node:net';

/** The address of a client, as a proxy reports it, or as the connection has it. */
export interface Endpoint {
  address: string;
  /** 0 = unknown. */
  port: number;
}

/** The proxies of `JF_TRUSTED_PROXIES`: what they say about the address of a client is believed. */
export class TrustedProxies {
  readonly #list = new BlockList();

  /** @param networks literal addresses and CIDR ranges, all valid */
  constructor(networks: readonly string[] = []) {
    for (const network of networks) {
      const [address = '', prefix] = network.split('/');
      const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
      if (prefix === undefined) this.#list.addAddress(address, family);
      else this.#list.addSubnet(address, Number(prefix), family);
    }
  }

  has(address: string): boolean {
    const bare = address.split('%', 1)[0] ?? '';
    const family = isIP(bare);

    return family !== 0 && this.#list.check(bare, family === 6 ? 'ipv6' : 'ipv4');
  }

  /**
   * Returns the address of the client behind a request: that of the connection, or where it is a trusted proxy's the last
   * address in `X-Forwarded-For` that is none. An entry that is no address ends the search: nothing before it can be believed.
   */
  clientOf(connection: string, forwardedFor: string | undefined): string {
    if (forwardedFor === undefined || !this.has(connection)) return connection;
    let client = connection;
    for (const entry of forwardedFor.split(',').toReversed()) {
      const address = addressIn(entry);
      if (address === undefined) break;
      client = address;
      if (!this.has(address)) break;
    }

    return client;
  }
}

/** Reads an entry of `X-Forwarded-For`: an address, with some proxies followed by a port. */
function addressIn(entry: string): string | undefined {
  const text = entry.trim();
  const address = /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text;

  return isIP(address) === 0 ? undefined : address;
}
