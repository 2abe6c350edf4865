import { type Clock, sleep, systemClock } from '@bloom/time';

/** Pause after a scrape, as a multiple of its duration: scrapes use a tenth of the time, however many are requested. */
const PAUSE_FACTOR = 9;
/** Less than the 10 s that Prometheus waits. */
const MAX_PAUSE_MS = 5_000;

/** Generates one text at a time. All callers that ask before generation starts share it. */
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

  /** Resolves with a text generated after the call. Callers share its bytes, so slow readers cost no extra copy. */
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
