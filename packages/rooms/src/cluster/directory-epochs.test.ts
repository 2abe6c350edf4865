// A room that has moved is one room on two nodes until its old owner withdraws.
import { expect, test } from '@jest/globals';
import type { RoomRef } from '../room/room-messages.js';
import { Directory } from './directory.js';

const roomAt = (node: string, epoch?: number) => ({
  roomId: 'r',
  createdAt: 1,
  ...(epoch === undefined ? {} : { epoch }),
  ref: { path: '/rooms/r', key: `${node}#1` } as RoomRef,
});

const start = (): Directory => new Directory('a', { now: () => 0 });

test.each([
  ['before', ['c', 'b']],
  ['after', ['b', 'c']],
] as const)('finds a moved room at its new owner when that announces it %s the old one', (_when, order) => {
  const directory = start();
  const epochs = { b: undefined, c: 1 };
  for (const node of order) expect(directory.add(node, roomAt(node, epochs[node]))).toBeUndefined();
  expect(directory.find('r')?.node).toBe('c');
});

test('ignores the withdrawal and a late announcement of an old owner', () => {
  const directory = start();
  directory.add('c', roomAt('c', 1));
  directory.remove('b', 'r');
  directory.replace('b', [roomAt('b')]);
  expect(directory.find('r')?.node).toBe('c');
});

test('finds a room that has moved away from this node at its new owner, or here while that is cut off', () => {
  const directory = start();
  directory.add('a', roomAt('a'));
  directory.given('r');
  directory.add('c', roomAt('c', 1));
  expect(directory.find('r')?.node).toBe('c');
  directory.lost('c');
  expect(directory.find('r')?.node).toBe('a');
});

test('keeps its own room when a member announces that it has moved there, and reports the conflict', () => {
  const directory = start();
  directory.add('a', roomAt('a'));
  expect(directory.add('c', roomAt('c', 1))).toEqual({ roomId: 'r', kept: 'c', shadowed: 'a' });
  expect(directory.find('r')?.node).toBe('a');
});

test('keeps a room that has moved away and back when a member announces it again', () => {
  const directory = start();
  directory.add('a', roomAt('a'));
  directory.given('r');
  directory.add('a', roomAt('a', 2));
  directory.add('c', roomAt('c', 3));
  expect(directory.find('r')?.node).toBe('a');
});

test('finds a room that has moved back at this node', () => {
  const directory = start();
  directory.add('c', roomAt('c', 1));
  directory.add('a', roomAt('a', 2));
  expect(directory.find('r')?.node).toBe('a');
});

test.each([
  ['withdraws it', (directory: Directory) => directory.remove('b', 'r')],
  ['no longer lists it', (directory: Directory) => void directory.replace('b', [])],
  ['leaves', (directory: Directory) => directory.left('b')],
])('remembers for a minute who has announced a room when its node %s', (_what, end) => {
  let now = 0;
  const directory = new Directory('a', { now: () => now });
  expect(directory.knewLately('b', 'r')).toBe(false);
  directory.add('b', roomAt('b'));
  expect(directory.knewLately('b', 'r')).toBe(true);
  end(directory);
  now = 59_999;
  expect([directory.knewLately('b', 'r'), directory.knewLately('c', 'r')]).toEqual([true, false]);
  now = 60_000;
  expect(directory.knewLately('b', 'r')).toBe(false);
});

test('remembers the latest 10,000 rooms that members no longer have', () => {
  const directory = start();
  for (let i = 0; i <= 10_000; i += 1) {
    directory.add('b', { ...roomAt('b'), roomId: `r${i}` });
    directory.remove('b', `r${i}`);
  }
  expect(['r0', 'r1', 'r10000'].map((roomId) => directory.knewLately('b', roomId))).toEqual([false, true, true]);
});

test('spends none of these memories on rooms that a member announces again', () => {
  const directory = start();
  directory.add('c', roomAt('c'));
  directory.remove('c', 'r');
  const rooms = Array.from({ length: 10_001 }, (_, i) => ({ ...roomAt('b'), roomId: `r${i}` }));
  directory.replace('b', rooms);
  directory.replace('b', rooms);
  expect(directory.knewLately('c', 'r')).toBe(true);
});

test('remembers a room that a member had without having announced it', () => {
  const directory = start();
  directory.had('b', 'r');
  expect([directory.knewLately('b', 'r'), directory.knows('b', 'r')]).toEqual([true, false]);
});

test('reports no conflict for a room that has moved, but one for another room of its id', () => {
  const directory = start();
  directory.add('b', roomAt('b'));
  expect(directory.add('c', roomAt('c', 1))).toBeUndefined();
  expect(directory.add('d', { ...roomAt('d'), createdAt: 2 })).toEqual({ roomId: 'r', kept: 'c', shadowed: 'd' });
});

test('prefers a moved room to another of its id, whichever is older', () => {
  const directory = start();
  directory.add('b', { ...roomAt('b'), createdAt: 0 });
  directory.add('c', roomAt('c', 1));
  expect(directory.find('r')?.node).toBe('c');
});

test('counts the rooms of all nodes, and forgets those that have ended or whose node has left', () => {
  const directory = start();
  directory.add('a', roomAt('a'));
  directory.replace('b', [roomAt('b'), { ...roomAt('b'), roomId: 's' }]);
  expect(directory.size).toBe(3);
  directory.remove('b', 's');
  expect(directory.size).toBe(2);
  directory.left('b');
  expect(directory.size).toBe(1);
});

test('does not take the new owner of a moved room for a standby that has taken it over', () => {
  const directory = start();
  directory.add('b', roomAt('b', 4));
  directory.add('c', roomAt('c', 5));
  expect(directory.takenFrom(roomAt('c', 5), 'c')).toEqual([]);
  directory.add('d', roomAt('d', 6));
  expect(directory.takenFrom(roomAt('d', 6), 'd')).toEqual(['b']);
});
