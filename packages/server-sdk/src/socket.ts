// The Node.js websocket. The browser bundle uses web-socket.ts instead.
import { WebSocket } from 'ws';
import { BloomConnectionError } from './errors.js';

/** Events for the owner of a socket. */
export interface SocketEvents {
  opened(): void;
  received(data: Uint8Array): void;
  /** The socket was closed, after `opened` or instead of it. */
  closed(code: number, reason: string): void;
  failed(error: BloomConnectionError): void;
}

/** A socket returned by `openSocket`. */
export interface EventSocket {
  send(data: Uint8Array): void;
  /** Stops reading, so that further messages stay with the server. */
  pause(): void;
  resume(): void;
  /** Closes the socket. No further event follows. */
  close(): void;
}

/** Number of messages that may wait for their reader before the socket is paused. */
export const MAX_WAITING = 1000;
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
const DEFAULT_SILENCE_MS = 75_000;

/** Opens a socket that counts as lost after `silenceMs` without a sign of life. */
export function openSocket(url: URL, events: SocketEvents, silenceMs = DEFAULT_SILENCE_MS): EventSocket {
  const socket = new WebSocket(url, { maxPayload: MAX_MESSAGE_BYTES });
  // A vanished server, or a firewall that dropped the connection, closes nothing.
  const silence = setTimeout(() => {
    // A paused socket receives no sign of life.
    if (socket.isPaused) return;
    events.failed(new BloomConnectionError(`${url.href} has said nothing for ${silenceMs} ms`));
  }, silenceMs);
  // The connection keeps the process running; this timer must not.
  silence.unref();
  for (const sign of ['open', 'message', 'ping'] as const) socket.on(sign, () => silence.refresh());
  socket.on('open', () => events.opened());
  socket.on('message', (data: Buffer) => events.received(data));
  socket.on('error', (cause) => events.failed(new BloomConnectionError(`${url.href}: ${cause.message}`, { cause })));
  socket.on('close', (code, reason) => events.closed(code, reason.toString()));
  return {
    send: (data) => socket.send(data),
    pause: () => socket.pause(),
    resume: () => {
      socket.resume();
      silence.refresh();
    },
    close: () => {
      clearTimeout(silence);
      socket.removeAllListeners('close');
      socket.removeAllListeners('error');
      socket.on('error', () => {});
      socket.terminate();
    },
  };
}
