import { createServer, type RequestListener } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { Server, serverUrl } from './server.js';

const servers: ReturnType<typeof createServer>[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function serve(listener: RequestListener, timeoutMs = 2_000): Promise<Server> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return new Server(serverUrl(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), timeoutMs);
}

test.each(['', 'media.example.com', 'ftp://media.example.com', 'https://me:secret@media.example.com'])(
  'does not accept %j as the address of a server',
  (text) => {
    expect(() => serverUrl(text)).toThrow(expect.objectContaining({ exit: 64 }));
  },
);

test('builds paths on that of the address, and uses the host that the server names for a websocket', () => {
  const server = new Server(serverUrl('https://example.com/media?x=1#y'), 1_000);
  expect(server.url.href).toBe('https://example.com/media/');
  expect(server.websocket(undefined)).toBe('wss://example.com/media/socket/peer/websocket');
  expect(server.websocket('b.example.com/socket')).toBe('wss://b.example.com/socket');
});

test('follows no redirect, since the token would go to another host', async () => {
  const server = await serve((_, response) => response.writeHead(302, { location: 'http://127.0.0.1:9/' }).end());
  await expect(server.call('GET', '/room', { token: 'secret' })).rejects.toMatchObject({ exit: 69 });
});

test('reads neither data nor an error from an answer that is not JSON', async () => {
  const server = await serve((_, response) => response.end('<html>'));
  expect(await server.call('GET', '/')).toMatchObject({ status: 200, json: {}, data: undefined });
});

test('truncates an endless answer', async () => {
  const server = await serve((_, response) => {
    const write = (): void => {
      while (!response.destroyed && response.write('x'.repeat(65_536)));
    };
    response.on('drain', write);
    write();
  });
  expect(await server.call('GET', '/')).toMatchObject({ status: 200, json: {} });
});

test('ends a slow answer at the time limit', async () => {
  const server = await serve((_, response) => {
    const timer = setInterval(() => response.write('x'), 10);
    response.on('close', () => clearInterval(timer));
  }, 300);
  await expect(server.call('GET', '/')).rejects.toMatchObject({ exit: 75 });
});

test('names a server without TLS where TLS is expected', async () => {
  const server = await serve((_, response) => response.end());
  const secure = new Server(new URL(server.url.href.replace('http:', 'https:')), 1_000);
  await expect(secure.call('GET', '/')).rejects.toMatchObject({ exit: 69, fix: expect.stringContaining('http') });
});
