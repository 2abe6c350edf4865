import { type Clock, Timer } from '@bloom/time';
import type { WorkerSample } from '../worker-choice.js';
import type { MediaWorker } from './media-worker.js';

const SAMPLE_MS = 1000;
/** Weight of the last second: a short rush must not scatter a room. */
const SMOOTHING = 0.4;

interface Load {
  busy: number;
  transports: number;
  unseen: number;
  /** False until its first second, which contains its start, is over. */
  isMeasured: boolean;
}

/** Measures how busy the workers are, for choosing one. */
export class WorkerLoads {
  readonly #workers: readonly MediaWorker[];
  readonly #loads = new Map<MediaWorker, Load>();
  readonly #timer: Timer;

  /** `workers` is the owner's list, read at each call. */
  constructor(workers: readonly MediaWorker[], clock: Clock) {
    this.#workers = workers;
    this.#timer = new Timer(clock);
    this.#timer.repeat(SAMPLE_MS, () => this.#measure());
  }

  /** Counts a transport that has just been opened. */
  opened(worker: MediaWorker): void {
    const load = this.#loadOf(worker);
    load.transports++;
    load.unseen++;
  }

  closed(worker: MediaWorker): void {
    this.#loadOf(worker).transports--;
  }

  /** Returns the workers that can take something. */
  samples(): WorkerSample[] {
    return this.#workers
      .filter(({ alive, port }) => alive && port > 0)
      .map((worker) => {
        const { busy, transports, unseen } = this.#loadOf(worker);
        return { worker: worker.id, busy, transports, rooms: worker.rooms.size, unseen };
      });
  }

  close(): void {
    this.#timer.stop();
  }

  #measure(): void {
    for (const worker of this.#loads.keys()) if (!this.#workers.includes(worker)) this.#loads.delete(worker);
    for (const worker of this.#workers) {
      const load = this.#loadOf(worker);
      const share = worker.busyShare?.('assignment') ?? 0;
      if (load.isMeasured) load.busy += SMOOTHING * (share - load.busy);
      load.isMeasured = worker.port > 0;
      load.unseen = 0;
    }
  }

  #loadOf(worker: MediaWorker): Load {
    let load = this.#loads.get(worker);
    if (load === undefined) {
      load = { busy: 0, transports: 0, unseen: 0, isMeasured: false };
      this.#loads.set(worker, load);
    }
    return load;
  }
}
