import type { Socket } from 'node:net';
import { sleep } from '@bloom/time';
import { socketWire } from '../link/socket-wire.js';
import { MACHINE, type NodeWorld, type Wire } from '../world.js';

const STEP_MS = 20;

/** The transports of one node's connections, which a test can disturb. `world` goes into the options of the node. */
export class TestWires {
  /** Unsent bytes that each connection reports. */
  pendingBytes: number | undefined;
  /** Limits the sending rate, as on a slow network. */
  bytesPerSecond: number | undefined;
  readonly #wires = new Set<Wire>();

  readonly world: NodeWorld = { ...MACHINE, wire: (socket) => this.#wire(socket) };

  /** Sends bytes on every connection, bypassing every check. */
  write(bytes: Buffer): void {
    for (const wire of this.#wires) wire.write(bytes);
  }

  #wire(socket: Socket): Wire {
    const wire = socketWire(socket, MACHINE.clock);
    const pendingBytes = (): number => this.pendingBytes ?? wire.pendingBytes;
    this.#wires.add(wire);
    let last = Promise.resolve();

    return {
      get pendingBytes() {
        return pendingBytes();
      },
      write: (bytes, done) => {
        const rate = this.bytesPerSecond;
        if (rate === undefined) wire.write(bytes, done);
        else last = last.then(() => pace(wire, bytes, rate)).then(done);
      },
      end: () => {
        this.#wires.delete(wire);
        wire.end();
      },
      destroy: () => {
        this.#wires.delete(wire);
        wire.destroy();
      },
    };
  }
}

async function pace(wire: Wire, bytes: Buffer, bytesPerSecond: number): Promise<void> {
  const size = Math.ceil((bytesPerSecond * STEP_MS) / 1_000);
  for (let sent = 0; sent < bytes.length; sent += size) {
    wire.write(bytes.subarray(sent, sent + size));
    await sleep(STEP_MS);
  }
}
