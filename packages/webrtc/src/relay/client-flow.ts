import type { TransportAddress } from '../stun/address.js';

/** How one client reaches our port: a UDP source address or a TCP connection. */
export interface ClientFlow {
  readonly protocol: 'udp' | 'tcp';
  readonly address: string;
  readonly port: number;
  /** The same in bytes, for XOR-MAPPED-ADDRESS. */
  readonly source: TransportAddress;
  /**
   * Sends one datagram or frame. False when its bytes are still in use (a UDP write the kernel could not take at once);
   * a caller that reuses its buffer must then wait.
   */
  send(datagram: Buffer): boolean;
  /** Media goes this way from now on, so that it may pay to have a socket of its own for it. */
  chosen?(): void;
  /** Undoes one `chosen`. */
  left?(): void;
}
