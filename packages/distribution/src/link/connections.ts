import type { Socket } from 'node:net';
import type { Term } from '@bloom/etf';
import { BusyWait } from './busy-wait.js';
import type { Clock } from '../clock.js';
import type { Control } from './control.js';
import type { Identity } from '../handshake/handshake.js';
import { type CloseReason, Link, type LinkLimits } from './link.js';
import type { ProcessTable } from '../processes.js';
import { Signals } from './signals.js';
import { socketWire } from './socket-wire.js';

export interface Connection {
  readonly link: Link;
  readonly signals: Signals;
}

export interface ConnectionsOptions {
  /** The own node, at its present creation. */
  readonly self: () => Identity;
  readonly limits: LinkLimits & { readonly maxSignals: number; readonly busyWaitMs: number };
  readonly clock: Clock;
  readonly defer: (run: () => void) => void;
  readonly table: ProcessTable;
  readonly guard: (what: string, run: () => void) => void;
  readonly control: (connection: Connection, control: Control, payload: Term) => void;
  /** There is a connection now; nothing has been read from it. */
  readonly up: (peer: Identity, dialled: boolean) => void;
  readonly closed: (node: string, reason: CloseReason, detail: string) => void;
}

/** The established connections, one per node. */
export class Connections {
  private readonly byNode = new Map<string, Connection>();

  constructor(private readonly options: ConnectionsOptions) {}

  get(node: string): Connection | undefined {
    return this.byNode.get(node);
  }

  has(node: string): boolean {
    return this.byNode.has(node);
  }

  all(): IterableIterator<Connection> {
    return this.byNode.values();
  }

  /** False when there was none. */
  close(node: string, reason: CloseReason, detail: string): boolean {
    const connection = this.byNode.get(node);
    connection?.link.close(reason, detail);
    return connection !== undefined;
  }

  /** A socket whose peer has proved itself becomes the connection to it, and takes the place of an earlier one. */
  adopt(socket: Socket, peer: Identity, rest: Buffer, dialled: boolean): void {
    const { self, limits, clock, defer, table, guard, control, closed, up } = this.options;
    const { name: node } = peer;
    this.close(node, 'replaced', 'it connected again');
    const own = self();
    const link = new Link({
      peer,
      dialled,
      ownFlags: own.flags,
      wire: socketWire(socket),
      limits,
      defer,
      wait: new BusyWait(clock, limits.busyWaitMs),
      events: {
        control: (_, message, payload) => control(connection, message, payload),
        closed: (_, reason, detail) => {
          if (this.byNode.get(node) === connection) this.byNode.delete(node);
          connection.signals.lost();
          closed(node, reason, detail);
        },
      },
    });
    const signals = new Signals({ link, table, self: own, maxEntries: limits.maxSignals, guard });
    const connection: Connection = { link, signals };
    this.byNode.set(node, connection);
    socket.on('data', (bytes) => link.receive(bytes));
    socket.on('end', () => link.lost('it closed the connection'));
    socket.on('error', (error) => link.lost(error.message));
    socket.on('close', () => link.lost('the connection was closed'));

    up(peer, dialled);
    if (rest.length > 0) link.receive(rest);
    socket.resume();
    if (socket.destroyed) link.lost('the connection was closed');
  }
}
