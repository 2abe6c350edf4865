import { setMaxListeners } from 'node:events';
import { isIPv6 } from 'node:net';
import { type Clock, systemClock, Timer } from '@bloom/time';

/** Delay between the starts of two attempts (RFC 8305 section 5). */
const ATTEMPT_DELAY_MS = 250;
/** Maximum number of candidates; further ones are not tried. */
const MAX_CANDIDATES = 16;

/** Returns the addresses with the families alternating, IPv6 first (RFC 8305 section 4), or IPv4. */
export function inRacingOrder(addresses: readonly string[], first: 4 | 6 = 6): string[] {
  const sixes = addresses.filter((address) => isIPv6(address));
  const fours = addresses.filter((address) => !isIPv6(address));
  const [ahead, behind] = first === 6 ? [sixes, fours] : [fours, sixes];
  const longest = Math.max(ahead.length, behind.length);

  return Array.from({ length: longest }).flatMap((_, at) =>
    [ahead[at], behind[at]].filter((address) => address !== undefined),
  );
}

export interface RaceOptions<T> {
  /** At least one, best first. */
  readonly candidates: readonly string[];
  /** Its signal is aborted once another candidate has won. */
  readonly attempt: (candidate: string, signal: AbortSignal) => Promise<T>;
  /** Closes the result of an attempt that succeeded too late. */
  readonly discard: (late: T) => void;
  /** Aborts all attempts. */
  readonly signal?: AbortSignal | undefined;
  readonly clock?: Clock;
}

/**
 * Tries candidates in parallel: the next one starts when the previous one has failed, or after 250 ms. Returns the
 * result of the first that succeeds; rejects with the error of the first that failed once all have failed.
 */
export function race<T>(options: RaceOptions<T>): Promise<T> {
  const { attempt, discard, signal, clock = systemClock } = options;
  const waiting = options.candidates.slice(0, MAX_CANDIDATES);
  const end = new AbortController();
  // Each attempt has its own.
  setMaxListeners(MAX_CANDIDATES, end.signal);
  const timer = new Timer(clock);
  let running = 0;
  let failure: unknown;

  return new Promise((resolve, reject) => {
    const settle = (done: () => void): void => {
      timer.stop();
      signal?.removeEventListener('abort', abort);
      end.abort();
      done();
    };
    const abort = (): void => settle(() => reject(signal?.reason as Error));
    const next = (): void => {
      const candidate = waiting.shift();
      if (candidate === undefined) {
        timer.stop();
        if (running === 0) settle(() => reject(failure as Error));
        return;
      }
      timer.start(ATTEMPT_DELAY_MS, next);
      running += 1;
      attempt(candidate, end.signal).then(
        (result) => {
          if (end.signal.aborted) discard(result);
          else settle(() => resolve(result));
        },
        (error: unknown) => {
          running -= 1;
          failure ??= error;
          if (!end.signal.aborted) next();
        },
      );
    };
    if (signal?.aborted === true) return abort();
    signal?.addEventListener('abort', abort);
    next();
  });
}
