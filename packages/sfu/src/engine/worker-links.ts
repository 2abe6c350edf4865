import { MessageChannel } from 'node:worker_threads';
import { createRingMemory } from '../crossing/shared-ring.js';
import type { MediaWorker } from './media-worker.js';

/** Shared memory of all links together, and of one direction of one link, bytes. */
const ALL_BYTES = 64 * 1024 * 1024;
const MOST_BYTES = 1024 * 1024;
const LEAST_BYTES = 128 * 1024;

type Linked = Pick<MediaWorker, 'id' | 'link' | 'unlink'>;

/** The links between workers: one for each pair that a room spans. */
export class WorkerLinks {
  readonly #connected = new Set<string>();
  readonly #bytes: number;

  /** `workers`: maximum number of workers. */
  constructor(workers: number) {
    const directions = Math.max(1, workers * (workers - 1));
    const share = Math.floor(ALL_BYTES / directions) & ~3;
    this.#bytes = Math.max(LEAST_BYTES, Math.min(MOST_BYTES, share));
  }

  /** Connects a worker to others. Returns false, and connects none, if all links would take too much memory. */
  connect(worker: Linked, others: readonly Linked[]): boolean {
    const missing = others.filter((other) => !this.#connected.has(pairOf(worker.id, other.id)));
    if ((this.#connected.size + missing.length) * 2 * this.#bytes > ALL_BYTES) return false;
    for (const other of missing) this.#link(worker, other);

    return true;
  }

  #link(one: Linked, other: Linked): void {
    this.#connected.add(pairOf(one.id, other.id));
    const { port1, port2 } = new MessageChannel();
    const [there, back] = [createRingMemory(this.#bytes), createRingMemory(this.#bytes)];
    one.link?.({ worker: other.id, port: port1, outgoing: there, incoming: back });
    other.link?.({ worker: one.id, port: port2, outgoing: back, incoming: there });
  }

  /** Ends the links of a worker that has ended. */
  ended(worker: Linked, others: readonly Linked[]): void {
    for (const other of others) {
      if (this.#connected.delete(pairOf(worker.id, other.id))) other.unlink?.(worker.id);
    }
  }
}

function pairOf(one: number, other: number): string {
  return one < other ? `${one}-${other}` : `${other}-${one}`;
}
