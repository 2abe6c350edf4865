import { PassThrough } from 'node:stream';
import { expect, test } from '@jest/globals';
import {
  MAX_UNAUTHENTICATED,
  MAX_UNAUTHENTICATED_BYTES,
  MAX_UNAUTHENTICATED_BYTES_IN_ALL,
  MAX_UNAUTHENTICATED_PER_NETWORK,
  UNAUTHENTICATED_GRACE_MS,
  UnauthenticatedSockets,
} from './unauthenticated-sockets.js';

const isOpen = () => true;

function open() {
  const dropped: string[] = [];
  const time = { now: 0 };
  const sockets = new UnauthenticatedSockets({
    onDrop: ({ address, limit }) => dropped.push(`${address} ${limit}`),
    now: () => time.now,
  });

  return { sockets, dropped, time };
}

test('allows a socket 16 KiB before it authenticates, and any number of bytes afterwards', () => {
  const { sockets, dropped } = open();
  const connection = new PassThrough();
  const release = sockets.add(connection, { address: 'a', isOpen })!;
  connection.emit('data', Buffer.alloc(MAX_UNAUTHENTICATED_BYTES));
  expect(connection.destroyed).toBe(false);
  release();
  connection.emit('data', Buffer.alloc(1_000_000));
  expect(connection.destroyed).toBe(false);
  expect(sockets.size).toBe(0);
  expect(dropped).toEqual([]);
});

test('destroys a socket that receives more than 16 KiB, unless its websocket is already closing', async () => {
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
  expect(connection.destroyed).toBe(true);
  expect(sockets.size).toBe(0);
  expect(dropped).toEqual(['a bytes']);
});

test('drops the oldest socket of a full network', () => {
  const { sockets, dropped, time } = open();
  const other = new PassThrough();
  sockets.add(other, { address: 'b', isOpen });
  const all = Array.from({ length: MAX_UNAUTHENTICATED_PER_NETWORK }, () => new PassThrough());
  for (const connection of all) sockets.add(connection, { address: 'a', isOpen });
  time.now = UNAUTHENTICATED_GRACE_MS;
  for (let i = 0; i < 2; i++) sockets.add(new PassThrough(), { address: 'a', isOpen });
  expect(all.map(({ destroyed }) => destroyed).indexOf(false)).toBe(2);
  expect(other.destroyed).toBe(false);
  expect(sockets.size).toBe(MAX_UNAUTHENTICATED_PER_NETWORK + 1);
  expect(dropped).toEqual(['a network', 'a network']);
});

test('counts all addresses of an IPv6 /64 as one network', () => {
  const { sockets, dropped, time } = open();
  for (let i = 0; i <= MAX_UNAUTHENTICATED_PER_NETWORK; i++) {
    time.now = i === MAX_UNAUTHENTICATED_PER_NETWORK ? UNAUTHENTICATED_GRACE_MS : 0;
    sockets.add(new PassThrough(), { address: `2001:db8::${i.toString(16)}`, isOpen });
  }
  expect(dropped).toEqual(['2001:db8::0 network']);
});

test('drops the oldest socket of all at the total limit', () => {
  const { sockets, dropped, time } = open();
  const all = Array.from({ length: MAX_UNAUTHENTICATED }, () => new PassThrough());
  for (const [i, connection] of all.entries()) sockets.add(connection, { address: `address ${i}`, isOpen });
  time.now = UNAUTHENTICATED_GRACE_MS;
  sockets.add(new PassThrough(), { address: 'newcomer', isOpen });
  expect(all[0]?.destroyed).toBe(true);
  expect(sockets.size).toBe(MAX_UNAUTHENTICATED);
  expect(dropped).toEqual(['address 0 total']);
});

test('refuses a newer socket rather than drop one that may still authenticate', () => {
  const { sockets, dropped, time } = open();
  const all = Array.from({ length: MAX_UNAUTHENTICATED_PER_NETWORK }, () => new PassThrough());
  for (const connection of all) sockets.add(connection, { address: 'a', isOpen });
  time.now = UNAUTHENTICATED_GRACE_MS - 1;
  expect(sockets.add(new PassThrough(), { address: 'a', isOpen })).toBeUndefined();
  expect(all.filter(({ destroyed }) => destroyed)).toEqual([]);
  expect(dropped).toEqual(['a network']);
});

test('drops a socket above its share once all together have received 8 MiB', async () => {
  const { sockets, dropped } = open();
  const add = (address: string, bytes: number): PassThrough => {
    const connection = new PassThrough();
    sockets.add(connection, { address, isOpen });
    connection.emit('data', Buffer.alloc(bytes));
    return connection;
  };
  const full = MAX_UNAUTHENTICATED_BYTES_IN_ALL / MAX_UNAUTHENTICATED_BYTES;
  for (let i = 0; i < full; i++) add(`large ${i}`, MAX_UNAUTHENTICATED_BYTES);
  const small = add('small', 300);
  add('another large', MAX_UNAUTHENTICATED_BYTES);
  await new Promise(setImmediate);
  expect(dropped).toEqual(['another large bytes']);
  expect(small.destroyed).toBe(false);
});

test('forgets a closed socket', async () => {
  const { sockets } = open();
  const connection = new PassThrough();
  sockets.add(connection, { address: 'a', isOpen });
  connection.destroy();
  await new Promise(setImmediate);
  expect(sockets.size).toBe(0);
});
