import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, test } from '@jest/globals';
import { systemClock } from '@bloom/time';
import { createWebhookPoster } from './webhook-post.js';

test.each([
  ['HTTP/1.1 204 No Content\r\n\r\n', 'sent'],
  ['HTTP/1.1 200 OK\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n', 'sent'],
  ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n', 'sent'],
  [
    'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
    'the connection ended without a response',
  ],
  ['HTTP/1.1 100 Continue\r\n\r\n', 'no answer within 1500 ms'],
  ['HTTP/2 200\r\n\r\n', 'Parse Error'],
])('a receiver that answers %j: %s', async (answer, outcome) => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined).once('data', () => socket.write(answer));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { post, close } = createWebhookPoster({ timeoutMs: 1_500, secret: null, clock: systemClock });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const posted = post(url, Buffer.from('event'), new AbortController().signal);

  expect(await posted.then(() => 'sent', String)).toContain(outcome);
  close();
  server.close();
});
