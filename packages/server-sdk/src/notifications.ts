import { decodeServerMessage, encodeServerMessage, type SubscriptionType } from '@bloom/protocol';
import { BloomApiError, BloomConnectionError } from './errors.js';
import { MAX_WAITING, openSocket } from './socket.js';
import type { Notification } from './types.js';

/** Options of `metrics`. */
export interface StreamOptions {
  signal?: AbortSignal;
  /** Called when the server has confirmed the subscription: the stream includes everything from then on. */
  onSubscribed?: () => void;
  /**
   * Time without a sign of life from the server after which the connection counts as lost. Default 75,000 ms; the
   * server pings every 30 s. No effect in a browser, which shows no pings.
   */
  silenceMs?: number;
}

/** Options of `notifications`. */
export interface NotificationStreamOptions extends StreamOptions {
  /** Includes each `dataMessage`, sent by clients on the data channels in their room's `dataEvents`. Default false. */
  dataEvents?: boolean;
  /** Includes `recordingUploaded` and `recordingFailed` of recordings with `notify`. Default false. */
  recordingEvents?: boolean;
}

type Message = ReturnType<typeof decodeServerMessage>;

/** Yields each notification. @throws BloomApiError 401 for a wrong token @throws BloomConnectionError */
export function notificationStream(
  url: URL,
  token: string,
  options: NotificationStreamOptions,
): AsyncIterableIterator<Notification> {
  const types = [
    'serverNotification',
    ...(options.dataEvents === true ? ['data' as const] : []),
    ...(options.recordingEvents === true ? ['recording' as const] : []),
  ] as const;
  return stream({ url, token, eventTypes: types }, options, toNotification);
}

/** Yields each report. @throws BloomApiError 401 for a wrong token @throws BloomConnectionError */
export function metricsReports(
  url: URL,
  token: string,
  options: StreamOptions,
): AsyncIterableIterator<Record<string, unknown>> {
  return stream({ url, token, eventTypes: ['metrics'] }, options, (message) =>
    message.type === 'metricsReport' ? (message.metrics as Record<string, unknown>) : undefined,
  );
}

/**
 * Returns the notification in a message's bytes, or undefined for a message of another kind.
 * @throws ProtocolError when the bytes are not a message
 */
export function decodeNotification(data: Uint8Array): Notification | undefined {
  return toNotification(decodeServerMessage(data));
}

function toNotification(message: Message): Notification | undefined {
  switch (message.type) {
    case 'unknown':
    case 'authenticated':
    case 'authRequest':
    case 'subscribeRequest':
    case 'subscribeResponse':
    case 'metricsReport':
      return undefined;
    default:
      return message;
  }
}

async function* stream<T>(
  { url, token, eventTypes }: { url: URL; token: string; eventTypes: readonly SubscriptionType[] },
  options: StreamOptions,
  read: (message: Message) => T | undefined,
): AsyncIterableIterator<T> {
  const waiting: T[] = [];
  let wake: () => void = () => {};
  let failure: Error | undefined;
  let ended = options.signal?.aborted ?? false;
  if (ended) return;

  const fail = (error: Error): void => {
    failure ??= error;
    wake();
  };
  const abort = (): void => {
    ended = true;
    wake();
  };
  let paused = false;
  let confirmed = 0;
  const receive = (data: Uint8Array): void => {
    const message = decodeServerMessage(data);
    if (message.type === 'authenticated') {
      for (const eventType of eventTypes) socket.send(encodeServerMessage({ type: 'subscribeRequest', eventType }));
      return undefined;
    }
    if (message.type === 'subscribeResponse') {
      confirmed += 1;
      return confirmed === eventTypes.length ? options.onSubscribed?.() : undefined;
    }
    const value = read(message);
    if (value === undefined) return undefined;
    waiting.push(value);
    if (waiting.length >= MAX_WAITING) {
      paused = true;
      socket.pause();
    }
    return wake();
  };
  const socket = openSocket(
    url,
    {
      opened: () => socket.send(encodeServerMessage({ type: 'authRequest', token })),
      received: (data) => {
        try {
          receive(data);
        } catch (cause) {
          fail(new BloomConnectionError(`${url.href} sent a message that cannot be read`, { cause }));
        }
      },
      closed: (code, reason) => {
        // Final: another attempt with this token ends the same way.
        if (reason === 'invalid token') fail(new BloomApiError(401, reason, undefined));
        else fail(new BloomConnectionError(`${url.href} closed the connection: ${reason || `code ${code}`}`));
      },
      failed: fail,
    },
    options.silenceMs,
  );
  options.signal?.addEventListener('abort', abort, { once: true });

  try {
    while (!ended) {
      const next = waiting.shift();
      if (next !== undefined) {
        if (paused && waiting.length <= MAX_WAITING / 2) {
          paused = false;
          socket.resume();
        }
        yield next;
      } else if (failure !== undefined) {
        throw failure;
      } else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    options.signal?.removeEventListener('abort', abort);
    socket.close();
  }
}
