import { randomBytes } from 'node:crypto';
import type { Server, Socket } from 'node:net';
import type { Registration } from '@bloom/port-mapper';
import { awakeClock, type Clock } from '@bloom/time';
import type { NodeName } from './handshake/names.js';

/** How others reach a node; empty for a node that only dials. */
export interface Reachable {
  readonly server?: Server;
  readonly registration?: Pick<Registration, 'creation' | 'registered' | 'close'>;
}

/** Names and connections, in place of DNS, the port mapper and TCP. */
export interface NodeNetwork {
  /** Listens under the node's name. */
  open(alive: string): Promise<Reachable>;
  /**
   * Connects to a node.
   * @throws DistributionError NODE_UNREACHABLE, NODE_NOT_REGISTERED
   */
  connect(target: NodeName, signal: AbortSignal): Promise<Socket>;
}

/** The transport under a link, such as a socket. */
export interface Wire {
  /** Written bytes that the operating system has not accepted yet. */
  readonly pendingBytes: number;
  /** Writes the bytes. Calls `done` when they may be reused. */
  write(bytes: Buffer, done?: () => void): void;
  /** Closes after everything has been written. */
  end(): void;
  destroy(): void;
}

/** Everything that a node needs from its machine. A simulated cluster passes its own. */
export interface NodeWorld {
  readonly clock: Clock;
  /** Returns a number from 0 to 1, for delays and choices. */
  readonly random: () => number;
  /** Returns 32 unpredictable bits. */
  readonly secretWord: () => number;
  /** Undefined: the network of the machine. */
  readonly network?: NodeNetwork | undefined;
  /** Creates the transport of a connection. Undefined: the socket itself. */
  readonly wire?: (socket: Socket) => Wire;
}

export const MACHINE: NodeWorld = {
  clock: awakeClock,
  random: Math.random,
  secretWord: () => randomBytes(4).readUInt32BE(),
};
