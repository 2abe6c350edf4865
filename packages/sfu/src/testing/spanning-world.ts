/** A room on two workers, for tests: two memory worlds with one clock, whose links deliver on request. */
import type { PacketRoute } from '../crossing/shared-ring.js';
import type { CrossingMessage, WorkerLink } from '../crossing/worker-link.js';
import { MemoryWorld } from './memory-port.js';

const ROOM = 1;
const TICK_MS = 20;

/** The link from one world to the other. */
class MemoryLink implements WorkerLink {
  readonly worker: number;
  readonly #from: number;
  readonly #to: MemoryWorld;
  /** Number of packets so far, by the index of their variant. */
  readonly crossed = [0, 0, 0];
  /** Set while the other worker reads nothing. */
  stuck = false;
  #queue: (() => void)[] = [];

  constructor(from: number, worker: number, to: MemoryWorld) {
    this.#from = from;
    this.worker = worker;
    this.#to = to;
  }

  forward(route: PacketRoute, packet: Uint8Array, sequence: number): boolean {
    if (this.stuck) return false;
    const copy = Buffer.from(packet);
    copy.writeUInt16BE(sequence, 2);
    const { track, room, variant } = route;
    this.crossed[variant]!++;
    this.#queue.push(() => {
      const { view } = this.#to.context;
      if (!view.parse(copy, 0, copy.length)) throw new Error('a crossing packet is no RTP');
      this.#to.room.crossings?.packet(this.#from, { track, room, variant }, this.#to.nowMs);
    });
    return true;
  }

  post(message: CrossingMessage): void {
    const copy = structuredClone(message);
    this.#queue.push(() => this.#to.room.crossings?.receive(this.#from, copy));
  }

  fits(): boolean {
    return !this.stuck;
  }

  /** Delivers everything in flight; returns false if nothing was. */
  deliver(): boolean {
    const queue = this.#queue;
    this.#queue = [];
    for (const each of queue) each();
    return queue.length > 0;
  }
}

export class SpanningWorld {
  readonly one = new MemoryWorld();
  readonly two = new MemoryWorld();
  readonly there = new MemoryLink(1, 2, this.two);
  readonly back = new MemoryLink(2, 1, this.one);

  constructor() {
    this.one.context.links.set(2, this.there);
    this.two.context.links.set(1, this.back);
    this.one.apply({ type: 'span', room: ROOM, worker: 2 });
    this.two.apply({ type: 'span', room: ROOM, worker: 1 });
    this.settle();
  }

  /** Delivers until nothing is in flight. */
  settle(): void {
    for (let isMoving = true; isMoving; ) isMoving = [this.there.deliver(), this.back.deliver()].includes(true);
  }

  advance(ms: number): void {
    for (let left = ms; left > 0; left -= TICK_MS) {
      this.one.advance(TICK_MS);
      this.two.advance(TICK_MS);
      this.settle();
    }
  }
}
