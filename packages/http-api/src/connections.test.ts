import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { expect, test } from '@jest/globals';
import { silentLog } from '@bloom/log';
import { ManualClock } from '@bloom/time/testing';
import { Connections, CROWDED_TIMEOUT_MS, MAX_UNSERVED_PER_NETWORK } from './connections.js';

test('all addresses of an IPv6 /64 have the share of one network', () => {
  const server = createServer();
  const connections = new Connections(server, silentLog);
  const open = (remoteAddress: string) => {
    const socket = Object.assign(new PassThrough(), { remoteAddress, remotePort: 4000 });
    server.emit('connection', socket);
    return socket;
  };
  const neighbour = open('2001:db8:0:1::1');
  const sockets = Array.from({ length: MAX_UNSERVED_PER_NETWORK + 1 }, (_, i) => open(`2001:db8::${i.toString(16)}`));
  expect(sockets.filter(({ destroyed }) => destroyed)).toEqual([sockets[0]]);
  expect(neighbour.destroyed).toBe(false);
  connections.destroy();
});

test.each([
  ['the header', 'GET /b HTTP/1.1\r\nHost: x\r\n'],
  ['the body', 'POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhello'],
])('connections that keep back a part of %s make room when all are taken', async (_what, part) => {
  const clock = new ManualClock();
  const server = createServer({ keepAliveTimeout: 75_000 }, (request, response) => {
    request.resume().on('end', () => response.end(request.url));
  });
  const connections = new Connections(server, silentLog, { limit: 20, clock });
  const accepted: Socket[] = [];
  server.on('connection', (socket) => accepted.push(socket));
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
  // The 21st, which is refused.
  all.push(await open());
  await Promise.all(closed);
  all.push(await openNext());
  for (const socket of all) socket.destroy();
  connections.destroy();
  server.close();
});
