import { isIP } from 'node:net';
import { connectTcp, type Names, systemResolver } from '@bloom/discovery';
import type { SourceUri } from './source-uri.js';

/** The native library's wording for the error codes of Node.js. */
const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'Connection refused',
  ETIMEDOUT: 'Connection timed out',
  EHOSTUNREACH: 'No route to host',
  ENETUNREACH: 'Network is unreachable',
};

export interface ReachOptions {
  /** Time limit for a connection to one address. */
  timeoutMs: number;
  signal: AbortSignal;
  resolver?: Names;
  /** Number of earlier attempts, which selects among the addresses of a source without TCP; default 0. */
  attempt?: number;
}

/**
 * Resolves with the address at which the source accepts connections, or with the reason that there is none. A source
 * without TCP is only looked up. Never rejects.
 */
export async function reach(
  { host, port, scheme }: Pick<SourceUri, 'host' | 'port' | 'scheme'>,
  { timeoutMs, signal, resolver = systemResolver(), attempt = 0 }: ReachOptions,
): Promise<{ address: string } | { reason: string }> {
  try {
    if (scheme === 'srt') {
      const addresses = await resolver.addresses(host);

      return { address: addresses[attempt % addresses.length]! };
    }
    const socket = await connectTcp({ host, port, timeoutMs, signal, resolver });
    const { remoteAddress } = socket;
    socket.destroy();

    return { address: remoteAddress ?? host };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;

    return { reason: REASONS[code ?? ''] ?? message };
  }
}

/** True for a host that has to be looked up. */
export function isName(host: string): boolean {
  return isIP(host) === 0;
}
