import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { TrustedProxies } from '@bloom/net';
import { ManualClock } from '@bloom/time/testing';
import {
  Connections,
  CROWDED_TIMEOUT_MS,
  MAX_IDLE_STRANGERS_PER_NETWORK,
  MAX_STRANGERS_REQUESTS_PER_NETWORK,
  MAX_UNSERVED_PER_NETWORK,
} from './connections.js';

/** Returns a connection without a network. */
function fake(remoteAddress: string, remotePort = 4000): Socket {
  return Object.assign(new PassThrough(), { remoteAddress, remotePort }) as unknown as Socket;
}

test('limits all addresses of an IPv6 /64 as one network', () => {
  const clock = new ManualClock();
  const connections = new Connections(createServer(), silentLog, { clock });
  const open = (remoteAddress: string) => {
    const socket = fake(remoteAddress);
    connections.add(socket);
    return socket;
  };
  const neighbour = open('2001:db8:0:1::1');
  const sockets = Array.from({ length: MAX_UNSERVED_PER_NETWORK }, (_, i) => open(`2001:db8::${i.toString(16)}`));
  clock.advance(1_000);
  open('2001:db8::ffff');
  expect(sockets.filter(({ destroyed }) => destroyed)).toEqual([sockets[0]]);
  expect(neighbour.destroyed).toBe(false);
  connections.destroy();
});

test('does not close a connection that may still send its request for a newer one', () => {
  const clock = new ManualClock();
  const connections = new Connections(createServer(), silentLog, { clock });
  const sockets = Array.from({ length: MAX_UNSERVED_PER_NETWORK + 1 }, (_, i) => fake('192.0.2.1', i));
  for (const socket of sockets) connections.add(socket);
  expect(sockets.filter(({ destroyed }) => destroyed)).toEqual(sockets.slice(-1));
  connections.destroy();
});

test('does not count the connections of a trusted proxy as one network', () => {
  const trusted = new TrustedProxies(['192.0.2.1']);
  const connections = new Connections(createServer(), silentLog, { trusted });
  const sockets = Array.from({ length: MAX_UNSERVED_PER_NETWORK + 1 }, (_, i) => fake('192.0.2.1', i));
  for (const socket of sockets) connections.add(socket);
  expect(sockets.filter(({ destroyed }) => destroyed)).toEqual([]);
  connections.destroy();
});

/** Emits the events of a request that is answered immediately. */
function ask(server: Server, socket: Socket, answer: (request: IncomingMessage) => void = () => undefined): void {
  const request = Object.assign(new PassThrough(), {
    socket,
    headers: {},
    complete: true,
  }) as unknown as IncomingMessage;
  const response = new EventEmitter();
  server.emit('request', request, response);
  answer(request);
  response.emit('close');
}

test("closes strangers' idle connections for newer ones, and keeps those that have shown a token", () => {
  const clock = new ManualClock();
  const server = createServer();
  server.removeAllListeners('request');
  const connections = new Connections(server, silentLog, { clock });
  const open = (port: number) => {
    const socket = fake('192.0.2.1', port);
    connections.add(socket);
    return socket;
  };
  const backend = open(1);
  ask(server, backend, (request) => connections.authenticated(request));
  const strangers = Array.from({ length: MAX_IDLE_STRANGERS_PER_NETWORK }, (_, i) => open(i + 2));
  for (const socket of strangers) ask(server, socket);
  clock.advance(1_000);
  const latest = open(60_000);
  ask(server, latest);
  expect(strangers.filter(({ destroyed }) => destroyed)).toEqual(strangers.slice(0, 1));
  expect(backend.destroyed).toBe(false);
  expect(latest.destroyed).toBe(false);
  connections.destroy();
});

test('refuses concurrent requests without a token above the limit of their own network only', () => {
  const connections = new Connections(createServer(), silentLog, { trusted: new TrustedProxies(['192.0.2.1']) });
  const from = (client: string) =>
    connections.admitStranger({
      socket: fake('192.0.2.1'),
      headers: { 'x-forwarded-for': client },
    } as unknown as IncomingMessage);
  for (let i = 0; i < MAX_STRANGERS_REQUESTS_PER_NETWORK; i++) from('203.0.113.1');
  expect(from('203.0.113.1')).toBe(false);
  expect(from('203.0.113.2')).toBe(true);
});

test.each([
  ['the header', 'GET /b HTTP/1.1\r\nHost: x\r\n'],
  ['the body', 'POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhello'],
])('closes connections that hold back part of %s when all are taken', async (_what, part) => {
  const clock = new ManualClock();
  const server = createServer({ keepAliveTimeout: 75_000 }, (request, response) => {
    request.resume().on('end', () => response.end(request.url));
  });
  const connections = new Connections(server, silentLog, { limit: 20, clock });
  const accepted: Socket[] = [];
  server.prependListener('connection', (socket) => {
    accepted.push(socket);
    connections.add(socket);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const open = async () => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined);
    await once(socket, 'connect');
    return socket;
  };
  const ask = async (socket: Socket) => {
    socket.write('GET /a HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(socket, 'data');
  };
  const openNext = async () => {
    const socket = await open();
    await ask(socket);
    return socket;
  };

  const slow = await Promise.all(Array.from({ length: 18 }, openNext));
  const whole = accepted[0]?.bytesRead ?? 0;
  for (const socket of slow) socket.write(part);
  while (accepted.some(({ bytesRead }) => bytesRead < whole + part.length)) await new Promise(setImmediate);
  const all = [...slow, await openNext()];
  clock.advance(CROWDED_TIMEOUT_MS - 1);
  all.push(await openNext(), await open());
  expect(slow.filter(({ closed }) => closed)).toEqual([]);

  clock.advance(1_000);
  const closed = slow.map((socket) => once(socket, 'close'));
  // The 21st connection, which is refused.
  all.push(await open());
  await Promise.all(closed);
  all.push(await openNext());
  for (const socket of all) socket.destroy();
  connections.destroy();
  server.close();
});

test('counts clients that were handed over no longer among those that wait for a request', () => {
  const connections = new Connections(createServer(), silentLog, { clock: new ManualClock() });
  const handedOver = Array.from({ length: MAX_UNSERVED_PER_NETWORK }, (_, i) => fake('192.0.2.1', i));
  for (const socket of handedOver) connections.add(socket);
  for (const socket of handedOver) connections.handOver(socket);
  const newcomer = fake('192.0.2.1', MAX_UNSERVED_PER_NETWORK);
  connections.add(newcomer);
  expect(newcomer.destroyed).toBe(false);
  connections.destroy();
  expect(handedOver.every(({ destroyed }) => destroyed)).toBe(true);
});
