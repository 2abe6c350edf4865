import { connect, isIP } from 'node:net';

/** Address of a source that accepts TCP connections. */
export interface TcpAddress {
  host: string;
  port: number;
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'rtsp:': 554, 'rtsps:': 322, 'rtmp:': 1_935, 'rtmps:': 443 };
/** The native library's wording for the error codes of Node.js. */
const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'Connection refused',
  ETIMEDOUT: 'Connection timed out',
  EHOSTUNREACH: 'No route to host',
  ENETUNREACH: 'Network is unreachable',
};

/**
 * Returns the address to connect to; undefined for a host name or a scheme without TCP. A name lookup would block one
 * of a few threads until a silent name server has timed out.
 */
export function tcpAddress(uri: string): TcpAddress | undefined {
  if (!URL.canParse(uri)) return undefined;
  const { protocol, hostname, port } = new URL(uri);
  const host = hostname.replace(/^\[|\]$/g, '');
  const fallback = DEFAULT_PORTS[protocol];

  return fallback === undefined || isIP(host) === 0 ? undefined : { host, port: port === '' ? fallback : Number(port) };
}

/** Resolves with the reason no connection is possible; undefined when one succeeds. Never rejects. */
export function whyUnreachable(
  { host, port }: TcpAddress,
  options: { timeoutMs: number; signal: AbortSignal },
): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: options.timeoutMs, signal: options.signal });
    const end = (reason?: string): void => {
      resolve(reason);
      socket.destroy();
    };
    socket.once('connect', () => end());
    socket.once('timeout', () => end(REASONS['ETIMEDOUT']));
    socket.on('error', ({ code, message }: NodeJS.ErrnoException) => end(REASONS[code ?? ''] ?? message));
  });
}
