import { createSocket, type Socket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import type { UdpConnection } from './udp-flow.js';

/** A burst of key frames from many publishers fits; the system caps it at its own limit. */
const SOCKET_BUFFER_BYTES = 4 * 1024 * 1024;
/** Pause after the system refused a socket, because files are used up. */
const REFUSED_PAUSE_MS = 10_000;

interface PortSocketOptions {
  address: string;
  /** Lets several sockets have the number; all of them must set it. */
  shared: boolean;
  /** Leaves IPv4 to another socket with the number, where the address is `::`. */
  ipv6Only?: boolean;
}

/** An unbound socket with the port's settings. */
export function portSocket({ address, shared, ipv6Only = false }: PortSocketOptions): Socket {
  const isV6 = isIPv6(address);
  return createSocket({
    type: isV6 ? 'udp6' : 'udp4',
    reuseAddr: shared,
    // The option is an error on an IPv4 socket.
    ipv6Only: isV6 && ipv6Only,
    recvBufferSize: SOCKET_BUFFER_BYTES,
    sendBufferSize: SOCKET_BUFFER_BYTES,
    // Addresses are literals: without this every send would wait for the next tick, after its buffer was reused.
    lookup: (host, _options, callback) => callback(null, host, isIPv6(host) ? 6 : 4),
  });
}

interface ClientSocketsOptions {
  /** Returns the address to listen on for this client. */
  addressFor(client: string): string;
  ipv6Only?: boolean;
  port: number;
  /** Bound on the sockets: the kernel's search for the receiver of a datagram grows with them. */
  max: number;
  /** Takes a datagram of any socket. Right after its creation a socket also receives those of other clients. */
  onMessage(datagram: Buffer, from: { address: string; port: number }): void;
  /** Called when a send on this socket could not be completed at once. */
  onBusy(socket: Socket): void;
}

/** Connected sockets besides the one that listens on the port: one for each client that receives media. */
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

  /** Returns undefined when there are too many or the system refuses: the common socket serves the client then. */
  connect(port: number, address: string): UdpConnection | undefined {
    if (this.#open.size >= this.#options.max || performance.now() < this.#refusedUntilMs) return undefined;
    const own = this.#options.addressFor(address);
    const socket = portSocket({ address: own, shared: true, ipv6Only: this.#options.ipv6Only ?? false });
    // ICMP errors of a client that is gone surface here; ICE notices its silence.
    socket.on('error', () => undefined);
    socket.on('message', this.#options.onMessage);
    try {
      // With our lookup both end within the call.
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
