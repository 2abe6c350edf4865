import { PassThrough } from 'node:stream';
import { expect, test } from '@jest/globals';
import {
  MAX_UNAUTHENTICATED,
  MAX_UNAUTHENTICATED_BYTES,
  MAX_UNAUTHENTICATED_PER_NETWORK,
  UnauthenticatedSockets,
} from './unauthenticated-sockets.js';

const isOpen = () => true;

function open() {
  const dropped: string[] = [];
  const sockets = new UnauthenticatedSockets({ onDrop: ({ address, limit }) => dropped.push(`${address} ${limit}`) });

  return { sockets, dropped };
}

test('a socket may receive 16 KiB before it authenticates, and any number of bytes afterwards', () => {
  const { sockets, dropped } = open();
  const connection = new PassThrough();
  const release = sockets.add(connection, { address: 'a', isOpen });
  connection.emit('data', Buffer.alloc(MAX_UNAUTHENTICATED_BYTES));
  expect(connection.destroyed).toBe(false);
  release();
  connection.emit('data', Buffer.alloc(1_000_000));
  expect([connection.destroyed, sockets.size, dropped]).toEqual([false, 0, []]);
});

test('one byte more destroys it, unless the websocket is closing already', async () => {
  const { sockets, dropped } = open();
  const connection = new PassThrough();
  sockets.add(connection, { address: 'a', isOpen });
  for (let i = 0; i <= MAX_UNAUTHENTICATED_BYTES / 1_024; i++) connection.emit('data', Buffer.alloc(1_024));
  const closing = new PassThrough();
  sockets.add(closing, { address: 'b', isOpen: () => false });
  closing.emit('data', Buffer.alloc(1_000_000));
  await new Promise(setImmediate);
  expect(closing.destroyed).toBe(false);
  closing.destroy();
  await new Promise(setImmediate);
  expect([connection.destroyed, sockets.size, dropped]).toEqual([true, 0, ['a bytes']]);
});

test('a full network loses its own oldest socket', () => {
  const { sockets, dropped } = open();
  const other = new PassThrough();
  sockets.add(other, { address: 'b', isOpen });
  const all = Array.from({ length: MAX_UNAUTHENTICATED_PER_NETWORK + 2 }, () => new PassThrough());
  for (const connection of all) sockets.add(connection, { address: 'a', isOpen });
  expect(all.map(({ destroyed }) => destroyed).indexOf(false)).toBe(2);
  expect([other.destroyed, sockets.size]).toEqual([false, MAX_UNAUTHENTICATED_PER_NETWORK + 1]);
  expect(dropped).toEqual(['a network', 'a network']);
});

test('all addresses of an IPv6 /64 are one network', () => {
  const { sockets, dropped } = open();
  for (let i = 0; i <= MAX_UNAUTHENTICATED_PER_NETWORK; i++) {
    sockets.add(new PassThrough(), { address: `2001:db8::${i.toString(16)}`, isOpen });
  }
  expect(dropped).toEqual(['2001:db8::0 network']);
});

test('a full house loses the oldest socket of all', () => {
  const { sockets, dropped } = open();
  const all = Array.from({ length: MAX_UNAUTHENTICATED + 1 }, () => new PassThrough());
  for (const [i, connection] of all.entries()) sockets.add(connection, { address: `address ${i}`, isOpen });
  expect(all[0]?.destroyed).toBe(true);
  expect([sockets.size, dropped]).toEqual([MAX_UNAUTHENTICATED, ['address 0 total']]);
});

test('a closed socket is forgotten', async () => {
  const { sockets } = open();
  const connection = new PassThrough();
  sockets.add(connection, { address: 'a', isOpen });
  connection.destroy();
  await new Promise(setImmediate);
  expect(sockets.size).toBe(0);
});
