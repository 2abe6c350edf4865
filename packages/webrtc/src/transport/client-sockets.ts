import { createSocket, type Socket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import type { UdpConnection } from './udp-flow.js';

/** Holds a burst of key frames from many publishers; the system caps it at its own limit. */
const SOCKET_BUFFER_BYTES = 4 * 1024 * 1024;
/** Pause after the system refused a socket because it ran out of file descriptors. */
const REFUSED_PAUSE_MS = 10_000;

interface PortSocketOptions {
  address: string;
  /** Lets several sockets share the port; all of them must set it. */
  shared: boolean;
  /** Leaves IPv4 to another socket on the same port when the address is `::`. */
  ipv6Only?: boolean;
}

/** Returns an unbound socket with the port's settings. */
export function portSocket({ address, shared, ipv6Only = false }: PortSocketOptions): Socket {
  const isV6 = isIPv6(address);
  return createSocket({
    type: isV6 ? 'udp6' : 'udp4',
    reuseAddr: shared,
    // The option is an error on an IPv4 socket.
    ipv6Only: isV6 && ipv6Only,
    recvBufferSize: SOCKET_BUFFER_BYTES,
    sendBufferSize: SOCKET_BUFFER_BYTES,
    // Addresses are literals. The default lookup delays every send to the next tick, after its buffer was reused.
    lookup: (host, _options, callback) => callback(null, host, isIPv6(host) ? 6 : 4),
  });
}

interface ClientSocketsOptions {
  /** Our own addresses. */
  addresses: readonly string[];
  ipv6Only?: boolean;
  port: number;
  /** Bound on the sockets: the kernel's search for a datagram's receiver grows with their number. */
  max: number;
  /** Takes a datagram from any socket. A newly created socket also receives datagrams of other clients. */
  onMessage(datagram: Buffer, from: { address: string; port: number }, local: number): void;
  /** Called when a send on this socket did not complete immediately. */
  onBusy(socket: Socket): void;
}

/** Connected sockets beside the port's listening socket, one for each client that receives media. */
export class ClientSockets {
  readonly #options: ClientSocketsOptions;
  readonly #open = new Set<Socket>();
  #refusedUntilMs = 0;

  constructor(options: ClientSocketsOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#open.size;
  }

  /** Opens a socket. Returns undefined at the limit or on refusal: the shared socket then serves the client. */
  connect({ port, address, local }: { port: number; address: string; local: number }): UdpConnection | undefined {
    if (this.#open.size >= this.#options.max || performance.now() < this.#refusedUntilMs) return undefined;
    const own = this.#options.addresses[local];
    if (own === undefined) return undefined;
    const socket = portSocket({ address: own, shared: true, ipv6Only: this.#options.ipv6Only ?? false });
    // ICMP errors of a vanished client surface here; ICE detects its silence.
    socket.on('error', () => undefined);
    socket.on('message', (datagram, from) => this.#options.onMessage(datagram, from, local));
    try {
      // With our lookup both complete synchronously.
      socket.bind({ port: this.#options.port, address: own, exclusive: true });
      socket.connect(port, address);
      socket.remoteAddress();
    } catch {
      this.#refusedUntilMs = performance.now() + REFUSED_PAUSE_MS;
      socket.close();
      return undefined;
    }
    this.#open.add(socket);
    return {
      send: (datagram) => {
        socket.send(datagram);
        if (socket.getSendQueueCount() === 0) return true;
        this.#options.onBusy(socket);
        return false;
      },
      close: () => {
        if (this.#open.delete(socket)) socket.close();
      },
    };
  }

  close(): void {
    for (const socket of this.#open) socket.close();
    this.#open.clear();
  }
}
