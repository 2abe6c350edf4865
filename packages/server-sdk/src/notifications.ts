import { createHmac, timingSafeEqual } from 'node:crypto';
import { decodeServerMessage, encodeServerMessage, ProtocolError, type SubscriptionType } from '@bloom/protocol';
import WebSocket from 'ws';
import { BloomApiError, BloomConnectionError, BloomMessageError } from './errors.js';
import type { Notification } from './types.js';

/** Options of `notifications` and `metrics`. */
export interface NotificationStreamOptions {
  signal?: AbortSignal;
  /** Called when the server has confirmed the subscription: everything that happens from then on is in the stream. */
  onSubscribed?: () => void;
  /** How long the server may be silent before the connection counts as lost; default 75,000 ms. It pings every 30 s. */
  silenceMs?: number;
}

/** Above this many waiting values the socket is paused; below half of it, resumed. */
const MAX_WAITING = 1000;
const DEFAULT_SILENCE_MS = 75_000;

type Message = ReturnType<typeof decodeServerMessage>;

/** Resolves to each notification in turn. @throws BloomApiError 401 for a wrong token @throws BloomConnectionError */
export function notificationStream(
  url: URL,
  token: string,
  options: NotificationStreamOptions,
): AsyncIterableIterator<Notification> {
  return stream(url, token, 'serverNotification', options, toNotification);
}

/** Resolves to each report in turn. @throws BloomApiError 401 for a wrong token @throws BloomConnectionError */
export function metricsReports(
  url: URL,
  token: string,
  options: NotificationStreamOptions,
): AsyncIterableIterator<Record<string, unknown>> {
  return stream(url, token, 'metrics', options, (message) =>
    message.type === 'metricsReport' ? (message.metrics as Record<string, unknown>) : undefined,
  );
}

/** What the signature of a webhook is checked with. */
export interface WebhookOptions {
  /** The server's `JF_WEBHOOK_SECRET`. */
  secret: string;
  /** The header `x-bloom-signature` of the request. */
  signature: string | string[] | null | undefined;
}

/**
 * Decodes the body of a webhook request, and with options checks its signature first. Returns undefined for an event that only
 * a newer server knows: answer 200 to it.
 * @throws BloomMessageError for a body that is no notification, or that the signature does not fit
 */
export function parseWebhook(body: Uint8Array | ArrayBuffer, options?: WebhookOptions): Notification | undefined {
  const bytes = body instanceof Uint8Array ? body : new Uint8Array(body);
  if (options !== undefined && !isSigned(bytes, options)) {
    throw new BloomMessageError('the signature of the webhook is missing or wrong');
  }
  try {
    return toNotification(decodeServerMessage(bytes));
  } catch (cause) {
    if (!(cause instanceof ProtocolError)) throw cause;
    throw new BloomMessageError('the body of the webhook is no notification', { cause });
  }
}

function isSigned(body: Uint8Array, { secret, signature }: WebhookOptions): boolean {
  const expected = Buffer.from(`sha256=${createHmac('sha256', secret).update(body).digest('hex')}`);
  const given = Buffer.from(typeof signature === 'string' ? signature : '');

  return given.length === expected.length && timingSafeEqual(given, expected);
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
  url: URL,
  token: string,
  eventType: SubscriptionType,
  options: NotificationStreamOptions,
  read: (message: Message) => T | undefined,
): AsyncIterableIterator<T> {
  const waiting: T[] = [];
  let wake: () => void = () => {};
  let failure: Error | undefined;
  let ended = options.signal?.aborted ?? false;
  if (ended) return;

  const socket = new WebSocket(url, { maxPayload: 16 * 1024 * 1024 });
  const fail = (error: Error) => {
    failure ??= error;
    wake();
  };
  const abort = () => {
    ended = true;
    wake();
  };
  // A server that vanished, or a firewall that dropped the connection, closes nothing.
  const silenceMs = options.silenceMs ?? DEFAULT_SILENCE_MS;
  const silence = setTimeout(() => {
    // A paused socket receives no sign of life.
    if (!socket.isPaused) fail(new BloomConnectionError(`${url.href} has said nothing for ${silenceMs} ms`));
  }, silenceMs);
  // The connection keeps a process running, not the wait for its end.
  silence.unref();
  for (const sign of ['open', 'message', 'ping'] as const) socket.on(sign, () => silence.refresh());
  options.signal?.addEventListener('abort', abort, { once: true });
  socket.on('open', () => socket.send(encodeServerMessage({ type: 'authRequest', token })));
  socket.on('error', (cause) => fail(new BloomConnectionError(`${url.href}: ${cause.message}`, { cause })));
  socket.on('close', (code, bytes) => {
    const reason = bytes.toString();
    // Final: another try with this token ends the same way.
    if (reason === 'invalid token') fail(new BloomApiError(401, reason, undefined));
    else fail(new BloomConnectionError(`${url.href} closed the connection: ${reason || `code ${code}`}`));
  });
  socket.on('message', (data: Buffer) => {
    try {
      const message = decodeServerMessage(data);
      if (message.type === 'authenticated') {
        socket.send(encodeServerMessage({ type: 'subscribeRequest', eventType }));
      } else if (message.type === 'subscribeResponse') {
        options.onSubscribed?.();
      } else {
        const value = read(message);
        if (value === undefined) return;
        waiting.push(value);
        if (waiting.length >= MAX_WAITING) socket.pause();
        wake();
      }
    } catch (cause) {
      fail(new BloomConnectionError(`${url.href} sent a message that cannot be read`, { cause }));
    }
  });

  try {
    while (!ended) {
      const next = waiting.shift();
      if (next !== undefined) {
        if (socket.isPaused && waiting.length <= MAX_WAITING / 2) {
          socket.resume();
          silence.refresh();
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
    clearTimeout(silence);
    options.signal?.removeEventListener('abort', abort);
    socket.removeAllListeners('close');
    socket.on('error', () => {});
    socket.terminate();
  }
}
