// The websocket of browsers and edge runtimes, used instead of socket.ts. It cannot be paused and shows no pings: a
// vanished server looks like one with nothing to report.
import { BloomConnectionError } from './errors.js';
import type { EventSocket, SocketEvents } from './socket.js';

/** Number of messages that may wait for their reader before the connection is closed: about 20 MB of events. */
export const MAX_WAITING = 50_000;

/** Opens a socket. */
export function openSocket(url: URL, events: SocketEvents): EventSocket {
  const socket = new WebSocket(url);
  socket.binaryType = 'arraybuffer';
  const listeners = new AbortController();
  const { signal } = listeners;
  socket.addEventListener('open', () => events.opened(), { signal });
  socket.addEventListener('message', ({ data }) => events.received(new Uint8Array(data as ArrayBuffer)), { signal });
  // `error` carries no information and is always followed by `close`.
  socket.addEventListener('close', ({ code, reason }) => events.closed(code, reason), { signal });
  const close = (): void => {
    listeners.abort();
    socket.close();
  };
  return {
    // The DOM types require bytes that are not shared between threads; protobuf never writes shared ones.
    send: (data) => socket.send(data as Uint8Array<ArrayBuffer>),
    pause: () => {
      close();
      events.failed(new BloomConnectionError(`${MAX_WAITING} messages of ${url.href} wait: they are not read in time`));
    },
    resume: () => undefined,
    close,
  };
}
