import type { TransportAddress } from '../stun/address.js';

/** How one client reaches our port: a UDP source address or a TCP connection. */
export interface ClientFlow {
  readonly protocol: 'udp' | 'tcp';
  readonly address: string;
  readonly port: number;
  /** The address in bytes, for XOR-MAPPED-ADDRESS. */
  readonly source: TransportAddress;
  /**
   * Sends one datagram or frame. Returns false when its bytes are still in use (a UDP write the kernel could not take at once):
   * a caller that reuses its buffer must wait then.
   */
  send(datagram: Buffer): boolean;
  /** Called when media starts to use this flow, which may then get a socket of its own. */
  chosen?(): void;
  /** Undoes one `chosen`. */
  left?(): void;
}
