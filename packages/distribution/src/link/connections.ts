import type { Socket } from 'node:net';
import type { Term } from '@bloom/etf';
import { BusyWait } from './busy-wait.js';
import type { Clock } from '@bloom/time';
import type { Control } from './control.js';
import { FrameBudget } from './frames.js';
import type { Authenticated } from '../handshake/dialer.js';
import type { Identity } from '../handshake/handshake.js';
import { type CloseReason, Link } from './link.js';
import type { Wire } from '../world.js';
import type { ProcessTable } from '../processes.js';
import type { NodeLimits } from '../limits.js';
import { Signals } from './signals.js';

export interface Connection {
  readonly link: Link;
  readonly signals: Signals;
}

export interface ConnectionsOptions {
  /** Our own node. */
  readonly self: Identity;
  readonly limits: NodeLimits;
  readonly wire: (socket: Socket) => Wire;
  readonly clock: Clock;
  readonly defer: (run: () => void) => void;
  readonly table: ProcessTable;
  readonly guard: (what: string, run: () => void) => void;
  readonly control: (connection: Connection, control: Control, payload: Term) => void;
  /** Called when a node is connected, before anything is read from it. */
  readonly up: (remote: Identity, dialled: boolean) => void;
  readonly closed: (node: string, reason: CloseReason, detail: string) => void;
}

/** The established connections, one per node. */
export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #byNode = new Map<string, Connection>();
  readonly #budget: FrameBudget;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
    this.#budget = new FrameBudget(options.limits.maxBufferedBytes);
  }

  get size(): number {
    return this.#byNode.size;
  }

  get(node: string): Connection | undefined {
    return this.#byNode.get(node);
  }

  has(node: string): boolean {
    return this.#byNode.has(node);
  }

  all(): IterableIterator<Connection> {
    return this.#byNode.values();
  }

  /** Closes a connection. Returns false when there was none. */
  close(node: string, reason: CloseReason, detail: string): boolean {
    const connection = this.#byNode.get(node);
    connection?.link.close(reason, detail);
    return connection !== undefined;
  }

  /** Makes the socket of an authenticated node its connection, replacing an earlier one. */
  adopt({ socket, remote, rest }: Authenticated, dialled: boolean): void {
    const { self, limits, wire, clock, defer, table, guard, control, closed, up } = this.#options;
    const { name: node } = remote;
    this.close(node, 'replaced', 'it connected again');
    const link = new Link({
      remote,
      dialled,
      ownFlags: self.flags,
      wire: wire(socket),
      limits,
      defer,
      budget: this.#budget,
      wait: new BusyWait(clock, limits.busyWaitMs),
      events: {
        control: (_, message, payload) => control(connection, message, payload),
        closed: (_, reason, detail) => {
          if (this.#byNode.get(node) === connection) this.#byNode.delete(node);
          connection.signals.lost();
          closed(node, reason, detail);
        },
      },
    });
    const signals = new Signals({
      link,
      table,
      self,
      maxEntries: limits.maxSignals,
      share: Math.floor(limits.maxSignals / limits.maxConnections),
      total: () => this.#totalSignals(),
      guard,
    });
    const connection: Connection = { link, signals };
    this.#byNode.set(node, connection);
    socket.on('data', (bytes) => link.receive(bytes));
    socket.on('end', () => link.lost('it closed the connection'));
    socket.on('error', (error) => link.lost(error.message));
    socket.on('close', () => link.lost('the connection was closed'));

    up(remote, dialled);
    if (rest.length > 0) link.receive(rest);
    socket.resume();
    if (socket.destroyed) link.lost('the connection was closed');
  }

  #totalSignals(): number {
    let total = 0;
    for (const { signals } of this.#byNode.values()) total += signals.size;
    return total;
  }
}
