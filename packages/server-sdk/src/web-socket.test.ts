import { once } from 'node:events';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { WebSocket } from 'ws';
import { serve, type TestServer } from './testing/server.js';
import { MAX_WAITING, openSocket } from './web-socket.js';

const original = globalThis.WebSocket;
let server: TestServer;

// Node 20 has no websocket; that of `ws` has the same interface.
beforeEach(() => void Object.assign(globalThis, { WebSocket }));
afterEach(async () => {
  Object.assign(globalThis, { WebSocket: original });
  await server.close();
});

test('drops the connection of a reader that is too slow, because the socket cannot wait for it', async () => {
  let closed: Promise<unknown> = Promise.resolve();
  server = await serve(
    () => undefined,
    (socket) => (closed = once(socket, 'close')),
  );
  const failure = await new Promise((resolve, reject) => {
    const socket = openSocket(new URL(server.url.replace('http', 'ws')), {
      opened: () => socket.pause(),
      received: reject,
      closed: reject,
      failed: resolve,
    });
  });
  expect(failure).toMatchObject({
    code: 'CONNECTION_ERROR',
    message: expect.stringContaining(`${MAX_WAITING} messages`),
  });
  await closed;
});
