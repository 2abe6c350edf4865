import type { ClientFlow } from '../relay/client-flow.js';
import type { TransportAddress } from '../stun/address.js';

/** A socket for one client alone, on the port's own number. */
export interface UdpConnection {
  /** As `ClientFlow.send`. */
  send(datagram: Buffer): boolean;
  close(): void;
}

/** The sending side of the port's sockets. */
export interface UdpSockets {
  send(datagram: Buffer, port: number, address: string): boolean;
  /** A connection to this client, or nothing where there can be no (further) one. */
  connect?(port: number, address: string): UdpConnection | undefined;
}

interface UdpFlowOptions {
  address: string;
  port: number;
  source: TransportAddress;
  sockets: UdpSockets;
  totals: { packetsSent: number; bytesSent: number };
  /** Flows that have a connection; the port closes those that are not used any more. */
  connected: Set<UdpFlow>;
}

/**
 * One client's UDP address. While media goes there it has a connected socket: the kernel then need not look at an address
 * per packet. Whether it is there makes no other difference.
 */
export class UdpFlow implements ClientFlow {
  readonly protocol = 'udp';
  readonly address: string;
  readonly port: number;
  readonly source: TransportAddress;
  readonly #options: UdpFlowOptions;
  #connection: UdpConnection | undefined;
  #users = 0;
  /** It was without a user when the port last looked. */
  #idle = false;

  constructor(options: UdpFlowOptions) {
    this.#options = options;
    this.address = options.address;
    this.port = options.port;
    this.source = options.source;
  }

  send(datagram: Buffer): boolean {
    const { totals, sockets } = this.#options;
    totals.packetsSent++;
    totals.bytesSent += datagram.length;
    if (this.#connection !== undefined) return this.#connection.send(datagram);
    return sockets.send(datagram, this.port, this.address);
  }

  chosen(): void {
    this.#users++;
    this.#idle = false;
    if (this.#connection !== undefined) return;
    this.#connection = this.#options.sockets.connect?.(this.port, this.address);
    if (this.#connection !== undefined) this.#options.connected.add(this);
  }

  left(): void {
    this.#users--;
  }

  /**
   * Call it about once a second: closes what has had no user for so long. Not at once, because what the client has sent
   * just before it changed its address may still wait in that socket.
   */
  sweep(): void {
    if (this.#users > 0) return;
    if (this.#idle) this.disconnect();
    this.#idle = true;
  }

  /** Back to the port's common socket. */
  disconnect(): void {
    this.#connection?.close();
    this.#connection = undefined;
    this.#options.connected.delete(this);
  }
}
