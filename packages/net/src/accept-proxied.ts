import type { Socket } from 'node:net';
import { readProxyHeader } from './proxy-header.js';
import type { Endpoint, TrustedProxies } from './trusted-proxies.js';

/** Time limit for a proxy to send the header, which comes with the first packet. */
const HEADER_MS = 5_000;

export interface ProxiedOptions {
  trusted: TrustedProxies;
  /** Called with the client's address once the header is read; the socket continues after the header. */
  accept: (socket: Socket, client: Endpoint) => void;
  /** Called for a connection that is not from a proxy or has no header. It is closed. */
  onRefused: (address: string, reason: 'not a trusted proxy' | 'no PROXY header') => void;
}

/** Reads the PROXY protocol header of a new connection (`JF_PROXY_PROTOCOL`). Closes any connection without one. */
export function acceptProxied(socket: Socket, { trusted, accept, onRefused }: ProxiedOptions): void {
  const { remoteAddress: address = '', remotePort: port = 0 } = socket;
  const refuse = (reason: 'not a trusted proxy' | 'no PROXY header'): void => {
    socket.destroy();
    onRefused(address, reason);
  };
  const ignore = (): void => undefined;
  socket.on('error', ignore);
  if (!trusted.has(address)) {
    refuse('not a trusted proxy');
    return;
  }

  let received: Buffer = Buffer.alloc(0);
  const late = setTimeout(() => refuse('no PROXY header'), HEADER_MS);
  const stop = (): void => {
    clearTimeout(late);
    socket.off('readable', read).off('close', stop).off('error', ignore);
  };
  const read = (): void => {
    const chunk = socket.read() as Buffer | null;
    if (chunk === null) return;
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    const header = readProxyHeader(received);
    if (header === 'incomplete') return;
    if (header === 'invalid') {
      stop();
      socket.on('error', ignore);
      refuse('no PROXY header');
      return;
    }
    stop();
    socket.unshift(received.subarray(header.byteLength));
    accept(socket, header.client ?? { address, port });
  };
  socket.on('readable', read).once('close', stop);
}
