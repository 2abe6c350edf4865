import { type Clock, sleep, systemClock } from '@bloom/time';

/** Pause after a scrape, as a multiple of the time that it took: scrapes get a tenth of the time, however many ask. */
const PAUSE_FACTOR = 9;
/** Below the 10 s for which Prometheus waits. */
const MAX_PAUSE_MS = 5_000;

/** Makes one text at a time. All who ask before it is begun share it. */
export class Scrapes {
  readonly #expose: () => Promise<string>;
  readonly #clock: Clock;
  #next: Promise<Buffer> | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #notBeforeMs = Number.NEGATIVE_INFINITY;

  constructor(expose: () => Promise<string>, clock: Clock = systemClock) {
    this.#expose = expose;
    this.#clock = clock;
  }

  /** Resolves with a text that is made after the call. The bytes are shared: slow readers cost no copy of their own. */
  take(): Promise<Buffer> {
    if (this.#next === undefined) {
      this.#next = this.#make(this.#last);
      this.#last = this.#next.catch(() => undefined);
    }
    return this.#next;
  }

  async #make(last: Promise<unknown>): Promise<Buffer> {
    await last;
    const pause = this.#notBeforeMs - this.#clock.now();
    if (pause > 0) await sleep(pause, { clock: this.#clock });
    this.#next = undefined;
    const begunMs = this.#clock.now();
    try {
      return Buffer.from(await this.#expose());
    } finally {
      const endedMs = this.#clock.now();
      this.#notBeforeMs = endedMs + Math.min(MAX_PAUSE_MS, (endedMs - begunMs) * PAUSE_FACTOR);
    }
  }
}
