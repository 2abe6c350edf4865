import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { expect, test } from '@jest/globals';
import { openTcpDelay } from './tcp-delay.js';

test('bytes come in order, a round trip after they were asked for and one for the handshake', async () => {
  const echo = createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1');
  await once(echo, 'listening');
  const delay = await openTcpDelay({ port: (echo.address() as AddressInfo).port, delayMs: 20 });
  const begun = performance.now();
  const client = connect(delay.port, '127.0.0.1');
  for (const text of ['a', 'b', 'c']) client.write(text);
  let heard = '';
  for await (const bytes of client) {
    heard += String(bytes);
    if (heard === 'abc') break;
  }
  expect(heard).toBe('abc');
  expect(performance.now() - begun).toBeGreaterThanOrEqual(75);
  await delay.close();
  echo.close();
});
