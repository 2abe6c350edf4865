import type { ClientFlow } from '../relay/client-flow.js';
import type { TransportAddress } from '../stun/address.js';

/** A socket on the port's own number for a single client. */
export interface UdpConnection {
  /** See `ClientFlow.send`. */
  send(datagram: Buffer): boolean;
  close(): void;
}

/** Sending side of the port's sockets. */
export interface UdpSockets {
  send(datagram: Buffer, to: UdpFlow): boolean;
  /** Returns a connection to this client; undefined if no more can be opened. */
  connect?(to: UdpFlow): UdpConnection | undefined;
}

interface UdpFlowOptions {
  address: string;
  port: number;
  /** Index of our own address. */
  local: number;
  source: TransportAddress;
  sockets: UdpSockets;
  totals: { packetsSent: number; bytesSent: number };
  /** Flows with a connection; the port closes unused ones. */
  connected: Set<UdpFlow>;
}

/**
 * One client's UDP address. While it receives media it uses a connected socket, which saves the kernel an address
 * lookup per packet and makes no other difference.
 */
export class UdpFlow implements ClientFlow {
  readonly protocol = 'udp';
  readonly address: string;
  readonly port: number;
  readonly local: number;
  readonly source: TransportAddress;
  readonly #options: UdpFlowOptions;
  #connection: UdpConnection | undefined;
  #users = 0;
  /** True if it had no user at the last sweep. */
  #idle = false;

  constructor(options: UdpFlowOptions) {
    this.#options = options;
    this.address = options.address;
    this.port = options.port;
    this.local = options.local;
    this.source = options.source;
  }

  send(datagram: Buffer): boolean {
    const { totals, sockets } = this.#options;
    totals.packetsSent++;
    totals.bytesSent += datagram.length;
    if (this.#connection !== undefined) return this.#connection.send(datagram);
    return sockets.send(datagram, this);
  }

  chosen(): void {
    this.#users++;
    this.#idle = false;
    if (this.#connection !== undefined) return;
    this.#connection = this.#options.sockets.connect?.(this);
    if (this.#connection !== undefined) this.#options.connected.add(this);
  }

  left(): void {
    this.#users--;
  }

  /**
   * Closes a connection that has had no user since the last call; call about once a second. The delay matters:
   * datagrams that the client sent just before changing its address may still be queued in that socket.
   */
  sweep(): void {
    if (this.#users > 0) return;
    if (this.#idle) this.disconnect();
    this.#idle = true;
  }

  /** Returns to the port's shared socket. */
  disconnect(): void {
    this.#connection?.close();
    this.#connection = undefined;
    this.#options.connected.delete(this);
  }
}
