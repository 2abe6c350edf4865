import { type Clock, Timer } from '@bloom/time';
import { HlsError } from './errors.js';

interface Waiter {
  check(): boolean;
  end(error?: HlsError): void;
}

/**
 * Limit per stream: if files are public, anyone can send such requests. A new request displaces the oldest, since a
 * real player asks only for what comes next and gets it soon.
 */
export const MAX_WAITING = 10_000;

/** Requests waiting for a condition. */
export class Waiters {
  readonly #limitMs: number;
  readonly #clock: Clock;
  readonly #waiting = new Set<Waiter>();

  constructor(limitMs: number, clock: Clock) {
    this.#limitMs = limitMs;
    this.#clock = clock;
  }

  /** Checks the conditions again. */
  wake(): void {
    for (const waiter of this.#waiting) if (waiter.check()) waiter.end();
  }

  /**
   * Resolves when `check` returns true.
   * @throws HlsError `WAITED_TOO_LONG` after the limit, `TOO_BUSY` as the oldest of `MAX_WAITING`, `NOT_FOUND` when the
   * signal is aborted
   */
  until(check: () => boolean, name: string, signal: AbortSignal): Promise<void> {
    if (check()) return Promise.resolve();
    if (this.#waiting.size >= MAX_WAITING) {
      const [oldest] = this.#waiting;
      oldest?.end(new HlsError('TOO_BUSY', `${MAX_WAITING} other requests wait for this stream`));
    }

    return new Promise((resolve, reject) => {
      const limit = new Timer(this.#clock);
      const done = (error?: HlsError): void => {
        this.#waiting.delete(waiter);
        limit.stop();
        signal.removeEventListener('abort', aborted);
        if (error === undefined) resolve();
        else reject(error);
      };
      const aborted = (): void =>
        done(new HlsError('NOT_FOUND', `The client that waited for ${name} has disconnected`));
      const waiter: Waiter = { check, end: done };
      if (signal.aborted) return aborted();
      limit.start(this.#limitMs, () =>
        done(new HlsError('WAITED_TOO_LONG', `${name} has not come within ${this.#limitMs} ms`)),
      );
      this.#waiting.add(waiter);
      signal.addEventListener('abort', aborted, { once: true });
    });
  }
}
