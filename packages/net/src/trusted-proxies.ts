import { BlockList, isIP } from 'node:net';

/** A client's address, taken from its connection or reported by a proxy. */
export interface Endpoint {
  address: string;
  /** 0 if unknown. */
  port: number;
}

/** The proxies of `JF_TRUSTED_PROXIES`, whose reports of a client's address are trusted. */
export class TrustedProxies {
  readonly #list = new BlockList();

  /** @param networks valid literal addresses and CIDR ranges */
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
   * Returns the client's address for a request: the connection's address or, if that is a trusted proxy, the last
   * untrusted address in `X-Forwarded-For`. An invalid entry ends the search, because nothing before it can be trusted.
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

/** Parses an entry of `X-Forwarded-For`: an address, to which some proxies append a port. */
function addressIn(entry: string): string | undefined {
  const text = entry.trim();
  const address = /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text;

  return isIP(address) === 0 ? undefined : address;
}
