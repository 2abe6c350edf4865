import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, test } from '@jest/globals';
import { NameServer, testResolver } from '@bloom/discovery/testing';
import { systemClock } from '@bloom/time';
import { ManualClock } from '@bloom/time/testing';
import { openWebhookPoster } from './webhook-post.js';

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
])('handles a receiver that answers %j: %s', async (answer, outcome) => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined).once('data', () => socket.write(answer));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { post, close } = openWebhookPoster({ timeoutMs: 1_500, headers: () => ({}), clock: systemClock });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const posted = post(url, Buffer.from('event'), new AbortController().signal);

  expect(await posted.then(() => 'sent', String)).toContain(outcome);
  close();
  server.close();
});

test('delivers an event through a balancer that has forgotten all idle connections', async () => {
  const answered = new Set<Socket>();
  let hasForgotten = false;
  const waiting: (() => void)[] = [];
  const server = createServer((socket) => {
    socket
      .on('error', () => undefined)
      .on('data', () => {
        if (hasForgotten && answered.has(socket)) socket.resetAndDestroy();
        else waiting.push(() => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'));
        answered.add(socket);
        // The first three are answered together, so that each has its own connection.
        if (hasForgotten || answered.size === 3) for (const answer of waiting.splice(0)) answer();
      });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { post, close } = openWebhookPoster({ timeoutMs: 5_000, headers: () => ({}), clock: systemClock });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const send = () => post(url, Buffer.alloc(0), new AbortController().signal).then(() => 'sent', String);
  try {
    await Promise.all([send(), send(), send()]);
    hasForgotten = true;
    expect(await send()).toBe('sent');
  } finally {
    close();
    server.close();
  }
});

test('delays no other receivers for names that no server answers for', async () => {
  const dns = await NameServer.open();
  const server = createServer((socket) => {
    socket.on('error', () => undefined).once('data', () => socket.end('HTTP/1.1 204 No Content\r\n\r\n'));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  dns.set('good.test', ['127.0.0.1'], 0);
  const clock = new ManualClock();
  const resolver = testResolver({ port: dns.port, clock });
  const { post, close } = openWebhookPoster({ timeoutMs: 5_000, headers: () => ({}), clock: systemClock, resolver });
  const given = new AbortController();
  // More than Node.js has threads for getaddrinfo.
  const lost = Array.from({ length: 40 }, (_, at) => {
    dns.setBoth(`hook${at}.test`, 'silent');
    return post(`http://hook${at}.test/`, Buffer.from('event'), given.signal).catch(() => 'lost');
  });
  const url = `http://good.test:${(server.address() as AddressInfo).port}`;
  for (let event = 0; event < 5; event += 1) await post(url, Buffer.from('event'), given.signal);
  given.abort();
  expect(dns.asked.filter((question) => question === 'A good.test')).toHaveLength(5);
  expect(await Promise.all(lost)).toEqual(lost.map(() => 'lost'));
  // Ends the questions, whose sockets would keep the process alive.
  clock.advance(60_000);
  close();
  server.close();
  await dns.close();
});
