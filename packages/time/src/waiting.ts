import { systemClock, type Clock } from './clock.js';

/** Resolves after `ms` milliseconds, or as soon as `signal` is aborted. */
export function sleep(
  ms: number,
  { clock = systemClock, signal }: { clock?: Clock; signal?: AbortSignal } = {},
): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();

    const end = (): void => {
      clock.clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = clock.setTimeout(end, ms);
    signal?.addEventListener('abort', end, { once: true });
  });
}

export interface TimeLimit<L> {
  readonly timeoutMs: number;
  /** Called when the time limit is reached. Its result, or the error it throws, becomes the outcome. */
  readonly late: () => L;
  readonly clock?: Clock;
}

/** Waits for `work` for at most `timeoutMs`. The work itself continues; a late rejection is ignored. */
export function inTime<T, L = never>(
  work: Promise<T>,
  { timeoutMs, late, clock = systemClock }: TimeLimit<L>,
): Promise<T | L> {
  let timer: unknown;
  const overdue = new Promise<void>((resolve) => {
    timer = clock.setTimeout(resolve, timeoutMs);
  }).then(late);

  return Promise.race([work, overdue]).finally(() => clock.clearTimeout(timer));
}
