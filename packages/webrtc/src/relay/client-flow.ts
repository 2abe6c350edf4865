import type { TransportAddress } from '../stun/address.js';

/** Route from a client to our port: a UDP source address or a TCP connection. */
export interface ClientFlow {
  readonly protocol: 'udp' | 'tcp';
  /** True inside TLS. */
  readonly secure?: boolean;
  readonly address: string;
  readonly port: number;
  /** Which of our own addresses the client sends to; absent for TCP. */
  readonly local?: number;
  /** The address in bytes, for XOR-MAPPED-ADDRESS. */
  readonly source: TransportAddress;
  /**
   * Sends one datagram or frame. Returns false when its bytes are still in use (the kernel did not accept a UDP write
   * immediately): a caller must not reuse the buffer yet.
   */
  send(datagram: Buffer): boolean;
  /** Called when media starts to use this flow, which may then open its own socket. */
  chosen?(): void;
  /** Reverses one call of `chosen`. */
  left?(): void;
}
