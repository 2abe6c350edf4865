import type { Socket } from 'node:net';
import type { Wire } from '../link/link.js';
import { socketWire } from '../link/socket-wire.js';

/** The transports of one node's connections, to be disturbed by a test: `wire` goes into the options of the node. */
export class TestWires {
  /** Unsent bytes that each connection claims to have. */
  pendingBytes: number | undefined;
  readonly #wires = new Set<Wire>();

  readonly wire = (socket: Socket): Wire => {
    const wire = socketWire(socket);
    const pendingBytes = (): number => this.pendingBytes ?? wire.pendingBytes;
    this.#wires.add(wire);

    return {
      get pendingBytes() {
        return pendingBytes();
      },
      write: (bytes, done) => wire.write(bytes, done),
      end: () => {
        this.#wires.delete(wire);
        wire.end();
      },
      destroy: () => {
        this.#wires.delete(wire);
        wire.destroy();
      },
    };
  };

  /** Sends bytes on every connection, past every check. */
  write(bytes: Buffer): void {
    for (const wire of this.#wires) wire.write(bytes);
  }
}
