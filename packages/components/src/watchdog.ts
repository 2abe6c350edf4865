/** Looks at the process in one period of `hangMs`. */
const LOOKS = 5;

/**
 * Watches a forked process that has something to say all the time; `onHang` is told when it has said nothing for `hangMs`.
 * Looks are counted, not time: when this process was the one that stood still, a look finds what came meanwhile.
 */
export class Watchdog {
  readonly #timer: NodeJS.Timeout;
  /** Looks in a row that found no sign of life. */
  #unheard = 0;

  constructor(hangMs: number, onHang: () => void) {
    this.#timer = setInterval(() => {
      this.#unheard += 1;
      if (this.#unheard > LOOKS) onHang();
    }, hangMs / LOOKS);
    this.#timer.unref();
  }

  /** A sign of life. */
  heard(): void {
    this.#unheard = 0;
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
