/**
 * A bad network in user space between clients and one UDP port of a server: loss, delay, jitter, reordering and a
 * bottleneck in each direction. The server advertises the relay's address (for example 127.0.0.2) and listens at its
 * own (127.0.0.1) on the same port number, so that clients cannot tell the difference.
 */
import type { Socket } from 'node:dgram';
import { createSocket } from 'node:dgram';
import type { LinkOptions } from './link.js';
import { Link, seededRandom } from './link.js';

export interface UdpRelayOptions {
  listen: { address: string; port: number };
  server: { address: string; port: number };
  /** From clients to the server. */
  up: LinkOptions;
  /** From the server to clients. */
  down: LinkOptions;
  seed?: number;
}

interface Flow {
  socket: Socket;
  up: Link;
  down: Link;
}

export interface UdpRelay {
  /** Applies to all flows, including existing ones. Each flow has separate links. */
  set(options: { up?: LinkOptions; down?: LinkOptions }): void;
  /** Links of each flow, keyed by client port. */
  readonly flows: ReadonlyMap<string, { up: Link; down: Link }>;
  close(): Promise<void>;
}

export async function openUdpRelay(options: UdpRelayOptions): Promise<UdpRelay> {
  const flows = new Map<string, Flow>();
  const random = seededRandom(options.seed ?? 1);
  let up = options.up;
  let down = options.down;
  const queue = new DeliveryQueue();
  const front = createSocket('udp4');
  front.on('message', (data, from) => {
    const key = `${from.address}:${from.port}`;
    let flow = flows.get(key);
    if (!flow) {
      const socket = createSocket('udp4');
      flow = { socket, up: new Link(up, random), down: new Link(down, random) };
      flows.set(key, flow);
      const { down: back } = flow;
      socket.on('message', (answer) =>
        queue.push(back.send(answer.length, performance.now()), () => front.send(answer, from.port, from.address)),
      );
      socket.on('error', () => {});
      socket.bind(0, options.server.address === '127.0.0.1' ? '127.0.0.1' : undefined);
    }
    const { socket } = flow;
    queue.push(flow.up.send(data.length, performance.now()), () =>
      socket.send(data, options.server.port, options.server.address),
    );
  });
  await new Promise<void>((done, failed) => {
    front.once('error', failed);
    front.bind(options.listen.port, options.listen.address, done);
  });
  return {
    flows,
    set(changed) {
      up = changed.up ?? up;
      down = changed.down ?? down;
      for (const flow of flows.values()) {
        flow.up.options = up;
        flow.down.options = down;
      }
    },
    async close() {
      queue.close();
      const sockets = [front, ...[...flows.values()].map((flow) => flow.socket)];
      await Promise.all(sockets.map((socket) => new Promise<void>((done) => socket.close(() => done()))));
    },
  };
}

/** Deliveries in time order on one timer. */
class DeliveryQueue {
  readonly #waiting: { atMs: number; deliver: () => void }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  push(atMs: number | undefined, deliver: () => void): void {
    if (atMs === undefined || this.#closed) return;
    let index = this.#waiting.length;
    while (index > 0 && (this.#waiting[index - 1]?.atMs ?? 0) > atMs) index -= 1;
    this.#waiting.splice(index, 0, { atMs, deliver });
    if (index === 0) this.#arm();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#waiting.length = 0;
  }

  #arm(): void {
    clearTimeout(this.#timer);
    const next = this.#waiting[0];
    if (!next) return;
    this.#timer = setTimeout(
      () => {
        const nowMs = performance.now();
        while ((this.#waiting[0]?.atMs ?? Number.POSITIVE_INFINITY) <= nowMs + 0.5) this.#waiting.shift()?.deliver();
        this.#arm();
      },
      Math.max(0, next.atMs - performance.now()),
    );
  }
}
