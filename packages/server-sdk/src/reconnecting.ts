import { BloomApiError, BloomConnectionError } from './errors.js';
import type { NotificationStreamOptions } from './notifications.js';
import type { Notification, RoomSnapshot } from './types.js';

/** Pauses between attempts double up to the maximum. Each is shortened by up to half, so that clients spread. */
const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 10_000;

/** Options of `notifications` with `reconnect`. */
export interface ReconnectingStreamOptions extends NotificationStreamOptions {
  reconnect: true;
  /** Upper limit of the pause before the next attempt. Default 10,000 ms. */
  maxDelayMs?: number;
  /** Called before the pause when the connection is lost or an attempt has failed. */
  onLost?: (error: BloomConnectionError | BloomApiError) => void;
}

interface ReconnectingOptions extends Omit<ReconnectingStreamOptions, 'reconnect'> {
  /** Opens one stream, from another node each time if there are several. */
  open(options: NotificationStreamOptions): AsyncIterableIterator<Notification>;
  snapshot(): Promise<RoomSnapshot>;
}

/**
 * Yields a snapshot of the rooms after each connection, then the events since the connection was made.
 * @throws BloomApiError 4xx, such as 401 for a wrong token
 */
export async function* reconnecting(
  options: ReconnectingOptions,
): AsyncGenerator<Notification | RoomSnapshot, void, undefined> {
  const { open, snapshot, signal, onSubscribed, silenceMs, maxDelayMs = MAX_DELAY_MS, onLost } = options;
  const { dataEvents, recordingEvents } = options;
  for (let failures = 0; signal?.aborted !== true; failures += 1) {
    const connection = new AbortController();
    const stop = (): void => connection.abort();
    signal?.addEventListener('abort', stop, { once: true });
    let events: AsyncIterableIterator<Notification> | undefined;
    try {
      let confirm: () => void = () => {};
      const confirmed = new Promise<void>((resolve) => (confirm = resolve));
      events = open({
        signal: connection.signal,
        ...(silenceMs === undefined ? {} : { silenceMs }),
        ...(dataEvents === undefined ? {} : { dataEvents }),
        ...(recordingEvents === undefined ? {} : { recordingEvents }),
        onSubscribed: () => {
          confirm();
          onSubscribed?.();
        },
      });
      // Subscribe before listing the rooms, so that changes in between are in the stream.
      let next = events.next();
      next.catch(() => {});
      await Promise.race([confirmed, next]);
      if (connection.signal.aborted) return;
      const rooms = await snapshot();
      if (connection.signal.aborted) return;
      yield rooms;
      failures = 0;
      for (;;) {
        const result = await next;
        if (result.done === true) return;
        yield result.value;
        next = events.next();
      }
    } catch (error) {
      if (!isPassing(error)) throw error;
      // A stream aborted while its rooms were being listed has ended correctly.
      if (connection.signal.aborted) return;
      onLost?.(error);
      await delay(delayMs(failures, maxDelayMs), signal);
    } finally {
      signal?.removeEventListener('abort', stop);
      connection.abort();
      // A stream waiting between two events does not see the signal.
      void events?.return?.();
    }
  }
}

/** True for failures that another attempt or another node may not have. */
function isPassing(error: unknown): error is BloomConnectionError | BloomApiError {
  return error instanceof BloomConnectionError || (error instanceof BloomApiError && error.status >= 500);
}

function delayMs(failures: number, maxDelayMs: number): number {
  return Math.min(maxDelayMs, FIRST_DELAY_MS * 2 ** failures) * (1 - Math.random() / 2);
}

/** Resolves after `ms`, or when `signal` aborts. */
function delay(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end);
    if (signal?.aborted === true) end();
  });
}
