import { HlsError } from './errors.js';

interface Waiter {
  check(): boolean;
  wake(): void;
}

/** Requests that wait until something is true. */
export class Waiters {
  private readonly waiting = new Set<Waiter>();

  constructor(
    private readonly limitMs: number,
    private readonly after: (ms: number, callback: () => void) => () => void,
  ) {}

  /** Something may have become true. */
  wake(): void {
    for (const waiter of this.waiting) if (waiter.check()) waiter.wake();
  }

  /** @throws HlsError `WAITED_TOO_LONG` after the limit, `NOT_FOUND` when nobody waits any more */
  until(check: () => boolean, name: string, signal: AbortSignal): Promise<void> {
    if (check()) return Promise.resolve();

    return new Promise((resolve, reject) => {
      const done = (error?: HlsError): void => {
        this.waiting.delete(waiter);
        cancel();
        signal.removeEventListener('abort', aborted);
        if (error === undefined) resolve();
        else reject(error);
      };
      const aborted = (): void => done(new HlsError('NOT_FOUND', `Nobody waits for ${name} any more`));
      const waiter: Waiter = { check, wake: () => done() };
      const cancel = this.after(this.limitMs, () =>
        done(new HlsError('WAITED_TOO_LONG', `${name} has not come within ${this.limitMs} ms`)),
      );
      if (signal.aborted) return aborted();
      this.waiting.add(waiter);
      signal.addEventListener('abort', aborted, { once: true });
    });
  }
}
